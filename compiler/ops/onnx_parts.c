// onnx_parts.c: ops that the importer of ONNX needs besides: sizes as values, and the quotient of whole numbers as C has it.
#include "op.h"

static bool sizes_shape(OpCall *call)
{
    Size count = size_const(call->cx, call_attr(call, "sizes")->count);
    return op_one(call, type_of(TYPE_i64, 1, &count));
}

static void sizes_compute(Context *cx, const Node *node, int output, Compute *out)
{
    const Attr *a = node_attr(node, "sizes");
    (void)output;
    compute_over(out, &node->out[0]->type.shape);
    out->body = e_whole(cx, 0);
    for (int i = a->count - 1; i >= 0; i--)
        out->body = i == a->count - 1 ? e_size(cx, a->sizes[i]) : e_select(cx, e_prim(cx, PRIM_eq, e_axis(cx, 0), e_whole(cx, i)), e_size(cx, a->sizes[i]), out->body);
}

const OpDef op_sizes = {
    .name = "sizes", .brief = "a list of sizes, some of which are known only when running", .inputs = "", .outputs = "y", .traits = OP_INTERNAL,
    .attrs = {{.name = "sizes", .kind = ATTR_SIZES, .brief = "its elements"}}, .shape = sizes_shape, .compute = sizes_compute, .no_grad = "a size is no float",
    .along = "mixes", .precision = "any", .cases = CASES("sizes = [3, 4, 5]", "sizes = [7]"),
};

const OpDef op_quotient = {
    .name = "quotient", .brief = "the quotient of whole numbers, cut towards zero; 0 where y is 0", .inputs = "x: int, y: like x", .outputs = "z", .traits = OP_INTERNAL | OP_DATA,
    .shape = broadcast_number_shape, .formula = "x / y", .no_grad = "whole numbers have none", .along = "each", .precision = "any", .onnx = {{"Div", 7, 0}},
    .cases = CASES("x: i32[2,3] in -9 9; y: i32[2,3] in 1 4", "x: i64[N,4] in -9 9; y: i64[4] in -4 -1"),
};
