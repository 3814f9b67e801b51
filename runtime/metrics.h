// metrics.h: what becomes of sums over batches.
#ifndef MLRT_METRICS_H
#define MLRT_METRICS_H

#include "mlrt.h"

// The number that a metric's sums come to: by its row `finish`. "": the value itself; "exp", "sqrt": of it; "iou": the mean over classes of a
// confusion matrix; "auc", "map": of counts by class and steps of probability; "f1": the mean F1 of all classes, from a
// confusion matrix or from (3, classes) true positives, false positives, false negatives; "confusion": no number, NaN.
double mlrt_metric_finish(const MlrtMetric *metric, const MlrtPort *port, const double *sum);

// The classes of a confusion matrix (rows: what it is, columns: what was predicted), 0 if the port holds none.
int64_t mlrt_confusion_classes(const MlrtMetric *metric, const MlrtPort *port);

int64_t mlrt_port_count(const MlrtPort *port);          // elements of a sample, or of all where it is no batch

// True if `value` is better than `best`; NaN and infinities never are, and anything else is better than a NaN.
// better: +1 higher, -1 lower.
bool mlrt_is_better(double value, double best, int better);

#endif
