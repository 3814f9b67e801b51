# What `cmake --install` puts where. mlc finds libmlrt.a and its headers from the place of its own file, so the tree may be moved.
set(manual ${CMAKE_CURRENT_BINARY_DIR}/manual)
file(MAKE_DIRECTORY ${manual})
add_custom_command(OUTPUT ${manual}/mlc.1 ${manual}/mlc ${manual}/_mlc ${manual}/mlc.fish
                   COMMAND mlc man > ${manual}/mlc.1
                   COMMAND mlc completion bash > ${manual}/mlc
                   COMMAND mlc completion zsh > ${manual}/_mlc
                   COMMAND mlc completion fish > ${manual}/mlc.fish
                   DEPENDS mlc VERBATIM)
add_custom_target(manual ALL DEPENDS ${manual}/mlc.1)

include(CMakePackageConfigHelpers)
configure_file(cmake/mlc.pc.in ${CMAKE_CURRENT_BINARY_DIR}/mlc.pc @ONLY)
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/mlcConfigVersion.cmake COMPATIBILITY SameMinorVersion)

file(GLOB runtime_headers CONFIGURE_DEPENDS runtime/*.h runtime/*.def)
install(TARGETS mlc RUNTIME DESTINATION bin)
install(TARGETS mlrt ARCHIVE DESTINATION lib/mlc)
install(FILES ${runtime_headers} DESTINATION include/mlc)
install(FILES ${manual}/mlc.1 DESTINATION share/man/man1)
install(FILES ${manual}/mlc DESTINATION share/bash-completion/completions)
install(FILES ${manual}/_mlc DESTINATION share/zsh/site-functions)
install(FILES ${manual}/mlc.fish DESTINATION share/fish/vendor_completions.d)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/mlc.pc DESTINATION lib/pkgconfig)
install(FILES cmake/mlcConfig.cmake cmake/mlcAddModel.cmake ${CMAKE_CURRENT_BINARY_DIR}/mlcConfigVersion.cmake
        DESTINATION lib/cmake/mlc)
