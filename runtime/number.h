// number.h: decimal text to numbers, correctly rounded, by a grammar of our own and whatever the locale says.
//
//   number  = [+-] (digits [. digits*] | . digits) [(e|E) [+-] digits] | [+-] (nan | inf | infinity), in any case
//   integer = [+-] digits [. zeros]
#ifndef MLRT_NUMBER_H
#define MLRT_NUMBER_H

#include "error.h"

typedef enum MlrtNumber {
    MLRT_NUMBER_OK,
    MLRT_NUMBER_SPECIAL,                // nan or an infinity, written as such
    MLRT_NUMBER_NONE,                   // not a number by the grammar
    MLRT_NUMBER_RANGE,                  // a number, too large for the type
    MLRT_NUMBER_FRACTION,               // an integer was asked for, and this one has a fraction or an exponent
} MlrtNumber;

// The whole of text[0..length) must be the number. *value is set for MLRT_NUMBER_OK and MLRT_NUMBER_SPECIAL only; what is
// too small becomes a subnormal or 0, as rounding says.
MlrtNumber mlrt_number_f32(const char *text, size_t length, float *value);
MlrtNumber mlrt_number_f64(const char *text, size_t length, double *value);
MlrtNumber mlrt_number_i64(const char *text, size_t length, int64_t *value);

#endif
