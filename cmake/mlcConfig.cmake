# find_package(mlc) gives mlc_add_model(), the compiler as mlc::mlc, and the runtime of training programs as mlc::mlrt.
# When cross compiling, mlc runs on this machine: -DMLC_EXECUTABLE=... names it.
include(CMakeFindDependencyMacro)
find_dependency(Threads)
find_dependency(ZLIB)
get_filename_component(mlc_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
if(NOT MLC_EXECUTABLE)
    set(MLC_EXECUTABLE "${mlc_prefix}/bin/mlc")
endif()
if(NOT TARGET mlc::mlc)
    add_executable(mlc::mlc IMPORTED)
    set_target_properties(mlc::mlc PROPERTIES IMPORTED_LOCATION "${MLC_EXECUTABLE}")
    add_library(mlc::mlrt STATIC IMPORTED)
    set_target_properties(mlc::mlrt PROPERTIES IMPORTED_LOCATION "${mlc_prefix}/lib/mlc/libmlrt.a"
                          INTERFACE_INCLUDE_DIRECTORIES "${mlc_prefix}/include/mlc"
                          INTERFACE_LINK_LIBRARIES "ZLIB::ZLIB;Threads::Threads;m")
endif()
include("${CMAKE_CURRENT_LIST_DIR}/mlcAddModel.cmake")
