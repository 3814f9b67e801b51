// choose.h: what the files that bind nodes to kernel files share.
#ifndef MLC_CHOOSE_H
#define MLC_CHOOSE_H

#include "passes.h"

#include "../compiler/ops/op.h"

enum { GEMM_SCRATCH = 49152 };          // floats: MLK_GEMM_SCRATCH on the widest target

// Arguments, in the order of the kernel's own.
void   add_size(Kernel *kernel, Size size);
void   add_number(Kernel *kernel, int64_t n);
void   add_value(Kernel *kernel, Value *value);         // NULL where there is none
void   add_window(Kernel *kernel, const Window *w);     // strides, padding before, dilations

bool   all_f32(const Node *node);
Value *input(const Node *node, const char *name);       // NULL: the node has none

// choose_conv.c
bool conv_fits(Work *work, const Node *node);
void bind_conv(Work *work, const Node *node, Kernel *kernel);
void bind_conv_grad_input(Work *work, const Node *node, Kernel *kernel);
void bind_conv_grad_weight(Work *work, const Node *node, Kernel *kernel);
bool winograd_fits(Work *work, const Node *node);
void bind_winograd(Work *work, const Node *node, Kernel *kernel);
void bind_winograd_grad_input(Work *work, const Node *node, Kernel *kernel);
void bind_winograd_grad_weight(Work *work, const Node *node, Kernel *kernel);

#endif
