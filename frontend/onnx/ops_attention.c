// ops_attention.c: attention, and what goes before it.
#include "import.h"

#include <math.h>

// (N, T, heads d) to (N, heads, T, d).
static Value *to_heads(OnnxCall *c, Value *x, int64_t heads)
{
    Size h = whole(c->m, heads), each;
    if (x == NULL || rank_of(x) == 4)
        return x;
    if (rank_of(x) != 3 || heads < 1 || (each = size_over(c->m->cx, dim_of(x, 2), h)) == NULL) {
        refuse_node(c, "%s cannot be divided into %d heads", type_text(c->m->cx, &x->type), (int)heads);
        return NULL;
    }
    x = reshape_to(c->m, x, 4, (Size[]){dim_of(x, 0), dim_of(x, 1), h, each});
    return transposed(c->m, x, (int64_t[]){0, 2, 1, 3});
}

// Each head so many times, one after the other.
static Value *repeated(Import *m, Value *x, int64_t times)
{
    if (x == NULL || times == 1)
        return x;
    Size n = dim_of(x, 0), h = dim_of(x, 1), t = dim_of(x, 2), d = dim_of(x, 3), k = whole(m, times);
    x = reshape_to(m, x, 5, (Size[]){n, h, whole(m, 1), t, d});
    x = broadcast_as(m, x, 5, (Size[]){n, h, k, t, d});
    return reshape_to(m, x, 4, (Size[]){n, size_times(m->cx, h, k), t, d});
}

// 0, 1, … as a column or a row.
static Value *line(Import *m, Size count, bool column)
{
    OpCall call = call_new(&m->b, "range", 0, NULL);
    call_sizes(&call, "count", 1, &count);
    call_type(&call, "type", TYPE_i64);
    Value *x = emit(m, &call);
    return column ? reshape_to(m, x, 2, (Size[]){count, whole(m, 1)}) : x;
}

static Value *more(Import *m, Value *bias, Value *next) { return bias == NULL ? next : op2(m, "add", bias, next); }

// Allowed places count 0, others -inf.
static Value *as_bias(Import *m, Value *allowed, DType type) { return op3(m, "where", allowed, number(m, type, 0), number(m, type, -INFINITY)); }

static Value *mask_bias(OnnxCall *c, Value *mask, Size keys, DType type)
{
    Import *m = c->m;
    int64_t have, want, pads[2 * RANK_MAX] = {0};
    int rank = rank_of(mask);
    if (mask == NULL)
        return NULL;
    if (mask->type.dtype == TYPE_bool)
        mask = as_bias(m, mask, type);
    mask = cast_to(m, mask, type);
    if (rank < 1 || size_equal(dim_of(mask, rank - 1), keys))
        return mask;
    if (!size_known(dim_of(mask, rank - 1), &have) || !size_known(keys, &want) || have > want) {
        refuse_node(c, "its mask does not fit the keys");
        return NULL;
    }
    pads[2 * rank - 1] = want - have;
    OpCall pad = call1(m, "pad", mask);
    call_ints(&pad, "pads", 2 * rank, pads);
    call_float(&pad, "value", -INFINITY);
    return emit(m, &pad);
}

void onnx_attention(OnnxCall *c)
{
    Import *m = c->m;
    Value *q = c->in[0], *k = c->in[1], *v = c->in[2], *mask = input_of(c, 3), *past_k = input_of(c, 4), *past_v = input_of(c, 5), *lengths = input_of(c, 6);
    DType type = q->type.dtype;
    int rank = rank_of(q);
    int64_t q_heads = int_of(c, "q_num_heads", 0), kv_heads = int_of(c, "kv_num_heads", 0), mode = int_of(c, "qk_matmul_output_mode", 0), d, nq, nk;
    int64_t precision = int_of(c, "softmax_precision", 0), left = int_of(c, "left_window_size", -1), right = int_of(c, "right_window_size", -1);
    bool causal = int_of(c, "is_causal", 0) != 0, wants_scores = c->n_out > 3 && *c->p->output[3];
    double cap = float_of(c, "softcap", 0), scale = float_of(c, "scale", 0);
    bool given = attribute(c, "scale") != NULL;
    if ((past_k == NULL) != (past_v == NULL) || (lengths != NULL && past_k != NULL)) {
        refuse_node(c, "past_key goes with past_value, and not with nonpad_kv_seqlen");
        return;
    }
    q = to_heads(c, q, q_heads), k = to_heads(c, k, kv_heads), v = to_heads(c, v, kv_heads);
    if (q == NULL || k == NULL || v == NULL)
        return;
    if (rank_of(q) != 4 || !size_known(dim_of(q, 3), &d) || !size_known(dim_of(q, 1), &nq) || !size_known(dim_of(k, 1), &nk) || nk < 1 || nq % nk != 0 || d < 1 ||
        k->type.dtype != type || v->type.dtype != type || mode < 0 || mode > 3) {
        refuse_node(c, "its heads do not fit each other");
        return;
    }
    Size past = past_k != NULL && rank_of(past_k) == 4 ? dim_of(past_k, 2) : whole(m, 0);
    k = past_k != NULL ? joined(m, 2, (Value *[]){past_k, k}, 2) : k;
    v = past_v != NULL ? joined(m, 2, (Value *[]){past_v, v}, 2) : v;
    c->out[1] = k, c->out[2] = v;
    if (k == NULL || v == NULL)
        return;
    Size queries = dim_of(q, 2), keys = dim_of(k, 2);
    Value *bias = mask_bias(c, mask, keys, type), *row = line(m, queries, true), *column = line(m, keys, false), *offset = NULL;
    // Query i stands at place i + offset of the keys: behind what is past, or at the end of what a sample has.
    if (causal || left >= 0 || right >= 0 || lengths != NULL) {
        int64_t n;
        if (lengths != NULL) {
            lengths = reshape_to(m, cast_to(m, lengths, TYPE_i64), 4, (Size[]){dim_of(q, 0), whole(m, 1), whole(m, 1), whole(m, 1)});
            if (!size_known(queries, &n)) {
                refuse_node(c, "nonpad_kv_seqlen with a number of queries that is known only when running is not available in this version");
                return;
            }
            offset = op2(m, "sub", lengths, number(m, TYPE_i64, (double)n));
        } else if (size_known(past, &n))
            offset = number(m, TYPE_i64, (double)n);
        else {
            OpCall sizes = call_new(&m->b, "sizes", 0, NULL);
            call_sizes(&sizes, "sizes", 1, &past);
            offset = emit(m, &sizes);
        }
    }
    Value *at = offset != NULL ? op2(m, "add", row, offset) : NULL;
    if (causal)
        bias = more(m, bias, as_bias(m, op2(m, "less_equal", column, at), type));
    if (left >= 0)
        bias = more(m, bias, as_bias(m, formula3(m, "x0 - x1 <= x2", at, column, number(m, TYPE_i64, (double)left)), type));
    if (right >= 0)
        bias = more(m, bias, as_bias(m, formula3(m, "x1 - x0 <= x2", at, column, number(m, TYPE_i64, (double)right)), type));
    if (lengths != NULL)
        bias = more(m, bias, as_bias(m, op2(m, "less", column, lengths), type));
    k = repeated(m, k, nq / nk), v = repeated(m, v, nq / nk);
    Value *factor = number(m, type, sqrt(given ? scale : 1 / sqrt((double)d)));
    Value *scores = op2(m, "matmul", op2(m, "mul", q, factor), op2(m, "mul", transposed(m, k, (int64_t[]){0, 1, 3, 2}), factor));
    if (wants_scores && mode == 0 && cap > 0) {
        refuse_node(c, "raw scores beside a soft cap are not available in this version");
        return;
    }
    if (cap > 0)
        scores = formula2(m, "x1 * tanh(x0 / x1)", scores, number(m, type, cap));
    c->out[3] = scores;
    if (bias != NULL)
        scores = op2(m, "add", scores, bias);
    c->out[3] = mode >= 2 ? scores : c->out[3];
    DType inner = precision != 0 ? dtype_of(c, (int)precision) : type;
    OpCall soft = call1(m, "softmax", cast_to(m, scores, inner));
    call_int(&soft, "axis", -1);
    Value *share = emit(m, &soft);
    if (bias != NULL && share != NULL) {                // who may see nothing gets 0
        int last = rank_of(bias) - 1;
        Value *most = last < 0 ? bias : reduced(m, "max", bias, 1, (int64_t[]){last}, true);
        share = op3(m, "where", op2(m, "equal", most, number(m, type, -INFINITY)), number(m, inner, 0), share);
    }
    share = cast_to(m, share, type);
    c->out[3] = mode == 3 ? share : c->out[3];
    Value *y = op2(m, "matmul", share, v);
    if (rank == 3 && y != NULL) {
        y = transposed(m, y, (int64_t[]){0, 2, 1, 3});
        y = y != NULL ? reshape_to(m, y, 3, (Size[]){dim_of(y, 0), dim_of(y, 1), size_times(m->cx, dim_of(y, 2), dim_of(y, 3))}) : NULL;
    }
    c->out[0] = y;
}

void onnx_rotary(OnnxCall *c)
{
    Import *m = c->m;
    Value *x = c->in[0], *cosine = c->in[1], *sine = c->in[2], *places = input_of(c, 3);
    int64_t heads = int_of(c, "num_heads", 0), turned = int_of(c, "rotary_embedding_dim", 0), d;
    bool woven = int_of(c, "interleaved", 0) != 0;
    int rank = rank_of(x);
    // (N, T, heads, d), whatever it was
    Value *wide = rank == 4 ? transposed(m, x, (int64_t[]){0, 2, 1, 3}) : NULL;
    if (rank == 3) {
        Size each = heads > 0 ? size_over(m->cx, dim_of(x, 2), whole(m, heads)) : NULL;
        if (each == NULL) {
            refuse_node(c, "%s cannot be divided into %d heads", type_text(m->cx, &x->type), (int)heads);
            return;
        }
        wide = reshape_to(m, x, 4, (Size[]){dim_of(x, 0), dim_of(x, 1), whole(m, heads), each});
    }
    if (wide == NULL || !size_known(dim_of(wide, 3), &d) || turned < 0 || turned > d) {
        refuse_node(c, "it turns (N, heads, T, d) or (N, T, heads d)");
        return;
    }
    turned = turned == 0 ? d : turned;
    int64_t half = turned / 2;
    if (places != NULL) {
        cosine = op2(m, "gather", cosine, places);
        sine = op2(m, "gather", sine, places);
    }
    if (cosine == NULL || sine == NULL || rank_of(cosine) != 3 || rank_of(sine) != 3 || turned % 2 != 0) {
        refuse_node(c, "its tables do not fit");
        return;
    }
    Size table[4] = {dim_of(cosine, 0), dim_of(cosine, 1), whole(m, 1), dim_of(cosine, 2)};
    cosine = reshape_to(m, cosine, 4, table), sine = reshape_to(m, sine, 4, table);
    Size n = whole(m, half);
    Value *a = sliced(m, wide, 3, whole(m, 0), n, woven ? 2 : 1), *b = sliced(m, wide, 3, whole(m, woven ? 1 : half), n, woven ? 2 : 1);
    Value *real = op2(m, "sub", op2(m, "mul", cosine, a), op2(m, "mul", sine, b)), *imaginary = op2(m, "add", op2(m, "mul", sine, a), op2(m, "mul", cosine, b));
    Value *y;
    if (woven) {
        Size pair[5] = {dim_of(wide, 0), dim_of(wide, 1), dim_of(wide, 2), n, whole(m, 1)};
        y = joined(m, 2, (Value *[]){reshape_to(m, real, 5, pair), reshape_to(m, imaginary, 5, pair)}, 4);
        y = reshape_to(m, y, 4, (Size[]){pair[0], pair[1], pair[2], whole(m, turned)});
    } else
        y = joined(m, 2, (Value *[]){real, imaginary}, 3);
    if (turned < d)
        y = joined(m, 2, (Value *[]){y, sliced(m, wide, 3, whole(m, turned), whole(m, d - turned), 1)}, 3);
    c->out[0] = rank == 4 ? transposed(m, y, (int64_t[]){0, 2, 1, 3}) : reshape_to(m, y, 3, x->type.shape.dim);
}

void onnx_swiglu(OnnxCall *c)
{
    Value *a = c->in[0];
    double alpha = float_of(c, "alpha", 1);
    Value *gate = formula2(c->m, "x0 * sigmoid(x1 * x0)", a, number(c->m, a->type.dtype, alpha));
    c->out[0] = op2(c->m, "mul", gate, c->in[1]);
}

void onnx_causal_conv(OnnxCall *c)
{
    Import *m = c->m;
    Value *x = c->in[0], *w = c->in[1], *bias = input_of(c, 2), *past = input_of(c, 3);
    const char *how = word_of(c, "activation", "none");
    int64_t channels, k, t, pads[6] = {0};
    bool silu = strcmp(how, "silu") == 0 || strcmp(how, "swish") == 0;
    if (rank_of(x) != 3 || rank_of(w) != 3 || !size_known(dim_of(x, 1), &channels) || !size_known(dim_of(w, 2), &k) || !size_known(dim_of(x, 2), &t) || k < 1 ||
        (!silu && strcmp(how, "none") != 0)) {
        refuse_node(c, "this form is not available in this version");
        return;
    }
    if (past != NULL)
        x = joined(m, 2, (Value *[]){past, x}, 2);
    else {
        pads[2] = k - 1;
        OpCall pad = call1(m, "pad", x);
        call_ints(&pad, "pads", 6, pads);
        x = emit(m, &pad);
    }
    // A sum over the taps, each channel by itself.
    Value *sum = NULL;
    DType type = c->in[0]->type.dtype, inner = type == TYPE_f64 ? TYPE_f64 : TYPE_f32;
    Value *wide = cast_to(m, x, inner), *weight = cast_to(m, w, inner);
    for (int64_t i = 0; i < k && !m->failed; i++) {
        Value *tap = reshape_to(m, sliced(m, weight, 2, whole(m, i), whole(m, 1), 1), 3, (Size[]){whole(m, 1), whole(m, channels), whole(m, 1)});
        Value *part = op2(m, "mul", sliced(m, wide, 2, whole(m, i), whole(m, t), 1), tap);
        sum = sum == NULL ? part : op2(m, "add", sum, part);
    }
    if (bias != NULL)
        sum = op2(m, "add", sum, reshape_to(m, cast_to(m, bias, inner), 3, (Size[]){whole(m, 1), whole(m, channels), whole(m, 1)}));
    sum = cast_to(m, sum, type);
    c->out[0] = silu ? formula1(m, "x0 * sigmoid(x0)", sum) : sum;
    c->out[1] = sliced(m, x, 2, whole(m, t), whole(m, k - 1), 1);
}
