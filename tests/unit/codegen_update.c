// codegen_update.c: a runtime for the test of the code generator: runs the update of a generated training program and
// compares it with the optimiser written down once more, in double; those whose answers tests/optimizers has only run.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "mlrt.h"

enum { COUNT_MAX = 64, STEPS = 3 };

static double hyper(const MlrtModel *model, const char *name)
{
    for (int i = 0; i < model->recipe->n_hyper; i++)
        if (strcmp(model->recipe->hyper[i], name) == 0)
            return model->recipe->group[i];
    return NAN;
}

// PyTorch's torch.optim.SGD, Adam and AdamW, one element at a time.
static void reference(const MlrtModel *model, int t, double g, double *p, double *m, double *v)
{
    double lr = hyper(model, "lr"), decay = hyper(model, "weight_decay");
    if (strcmp(model->recipe->optimizer, "sgd") == 0) {
        g += decay * *p;
        *m = t > 1 ? hyper(model, "momentum") * *m + (1 - hyper(model, "dampening")) * g : g;
        *p -= lr * (hyper(model, "nesterov") > 0 ? g + hyper(model, "momentum") * *m : *m);
        return;
    }
    double beta1 = hyper(model, "beta1"), beta2 = hyper(model, "beta2");
    if (strcmp(model->recipe->optimizer, "adamw") == 0)
        *p -= lr * decay * *p;
    else
        g += decay * *p;
    *m = beta1 * *m + (1 - beta1) * g;
    *v = beta2 * *v + (1 - beta2) * g * g;
    *p -= lr * (*m / (1 - pow(beta1, t))) / (sqrt(*v / (1 - pow(beta2, t))) + hyper(model, "eps"));
}

int mlrt_main(const MlrtModel *model, int argc, char **argv)
{
    static float param[COUNT_MAX], grad[COUNT_MAX], state[3 * COUNT_MAX];
    static double p[COUNT_MAX], m[COUNT_MAX], v[COUNT_MAX];
    static char scratch[1 << 20];
    const char *name = model->recipe->optimizer;
    bool known = strcmp(name, "sgd") == 0 || strncmp(name, "adam", 4) == 0;
    MlrtRun run = {.param = (char *)param,
                   .grad = (char *)grad,
                   .state = (char *)state,
                   .scratch = scratch,
                   .hyper = model->recipe->group,
                   .size = {4}};
    (void)argc, (void)argv;
    int64_t count = model->trainable_count;
    if (count < 1 || count > COUNT_MAX || model->abi != MLRT_ABI || model->scratch_bytes > sizeof scratch)
        return 1;
    for (int64_t i = 0; i < count; i++)
        p[i] = param[i] = (float)sin(3.0 * (double)i);
    for (int t = 1; t <= STEPS; t++) {
        run.step = (uint64_t)t;
        for (int64_t i = 0; i < count; i++) {
            grad[i] = (float)cos((double)(i + 7 * t));
            reference(model, t, grad[i], &p[i], &m[i], &v[i]);
        }
        for (int s = 0; s < model->update.count; s++)
            for (int part = 0; part < model->update.step[s].parts; part++)
                model->update.step[s].run(&run, part);
    }
    for (int64_t i = 0; i < count; i++)
        if (known ? !(fabs(p[i] - (double)param[i]) < 1e-6) : !isfinite(param[i])) {  // a few roundings to float of numbers around 1
            fprintf(stderr, "%s: parameter %d is %.9g, expected %.9g\n", model->recipe->optimizer, (int)i,
                    (double)param[i], p[i]);
            return 1;
        }
    return 0;
}
