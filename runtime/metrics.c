// metrics.c: finishing metrics. See metrics.h.
#include "metrics.h"

#include <math.h>
#include <string.h>

int64_t mlrt_port_count(const MlrtPort *port)
{
    int64_t count = 1;
    for (int i = 0; i < port->rank; i++)
        count *= port->dim[i];
    return count;
}

static double f1_of(double hits, double wrongly, double missed)
{
    double all = 2 * hits + wrongly + missed;
    return all > 0 ? 2 * hits / all : 0;
}

static double f1_of_matrix(const double *sum, int64_t classes)
{
    double total = 0;
    for (int64_t c = 0; c < classes; c++) {
        double hits = sum[c * classes + c], is = 0, said = 0;
        for (int64_t i = 0; i < classes; i++) {
            is += sum[c * classes + i];
            said += sum[i * classes + c];
        }
        total += f1_of(hits, said - hits, is - hits);
    }
    return classes > 0 ? total / (double)classes : NAN;
}

static double f1_of_counts(const double *sum, int64_t classes)
{
    double total = 0;
    for (int64_t c = 0; c < classes; c++)
        total += f1_of(sum[c], sum[classes + c], sum[2 * classes + c]);
    return classes > 0 ? total / (double)classes : NAN;
}

// Of the classes that occur, in the truth or in what was said.
static double iou_of_matrix(const double *sum, int64_t classes)
{
    double total = 0;
    int64_t seen = 0;
    for (int64_t c = 0; c < classes; c++) {
        double hits = sum[c * classes + c], either = -hits;
        for (int64_t i = 0; i < classes; i++)
            either += sum[c * classes + i] + sum[i * classes + c];
        total += either > 0 ? hits / either : 0;
        seen += either > 0;
    }
    return seen > 0 ? total / (double)seen : NAN;
}

// sum: how often each step of the probability occurs, of class 0, then of class 1. Equal steps count half.
static double auc_of_steps(const double *sum, int64_t steps)
{
    double zeros = 0, ones = 0, won = 0;
    for (int64_t i = 0; i < steps; i++) {
        won += sum[steps + i] * (zeros + sum[i] / 2);
        zeros += sum[i];
        ones += sum[steps + i];
    }
    return zeros > 0 && ones > 0 ? won / (zeros * ones) : NAN;
}

// sum: (classes, 1 + steps, 2): objects; then what was found rightly and wrongly at each step of confidence. Precision at a
// recall is the best at that recall or beyond.
static double average_precision(const double *sum, int64_t steps)
{
    double objects = sum[0], right = 0, wrong = 0, area = 0, best = 0;
    for (int64_t i = 1; i < steps; i++) {
        right += sum[2 * i];
        wrong += sum[2 * i + 1];
    }
    for (int64_t i = 1; i < steps; i++) {          // from the largest recall down
        double precision = right + wrong > 0 ? right / (right + wrong) : 0;
        best = precision > best ? precision : best;
        area += best * sum[2 * i] / objects;
        right -= sum[2 * i];
        wrong -= sum[2 * i + 1];
    }
    return area;
}

static double mean_average_precision(const double *sum, int64_t classes, int64_t steps)
{
    double total = 0;
    int64_t seen = 0;
    for (int64_t c = 0; c < classes; c++)
        if (sum[c * steps * 2] > 0) {
            total += average_precision(sum + c * steps * 2, steps);
            seen++;
        }
    return seen > 0 ? total / (double)seen : NAN;
}

double mlrt_metric_finish(const MlrtMetric *metric, const MlrtPort *port, const double *sum)
{
    int64_t count = mlrt_port_count(port);
    if (strcmp(metric->finish, "f1") == 0) {
        bool matrix = port->rank == 2 && port->dim[0] == port->dim[1];
        return matrix ? f1_of_matrix(sum, port->dim[0]) : count % 3 == 0 ? f1_of_counts(sum, count / 3) : NAN;
    }
    if (strcmp(metric->finish, "iou") == 0)
        return port->rank == 2 && port->dim[0] == port->dim[1] ? iou_of_matrix(sum, port->dim[0]) : NAN;
    if (strcmp(metric->finish, "auc") == 0)
        return port->rank == 2 && port->dim[0] == 2 ? auc_of_steps(sum, port->dim[1]) : NAN;
    if (strcmp(metric->finish, "map") == 0)
        return port->rank == 3 && port->dim[2] == 2 ? mean_average_precision(sum, port->dim[0], port->dim[1]) : NAN;
    if (strcmp(metric->finish, "exp") == 0)
        return count == 1 ? exp(sum[0]) : NAN;
    if (strcmp(metric->finish, "sqrt") == 0)
        return count == 1 ? sqrt(sum[0]) : NAN;
    return strcmp(metric->finish, "confusion") == 0 || count != 1 ? NAN : sum[0];
}

int64_t mlrt_confusion_classes(const MlrtMetric *metric, const MlrtPort *port)
{
    bool matrix = strcmp(metric->finish, "confusion") == 0 && port->rank == 2 && port->dim[0] == port->dim[1];
    return matrix ? port->dim[0] : 0;
}

bool mlrt_is_better(double value, double best, int better)
{
    if (!isfinite(value))
        return false;
    return isnan(best) || (better > 0 ? value > best : value < best);
}
