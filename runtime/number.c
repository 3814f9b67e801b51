// number.c: decimal text to numbers.
//
// The digits are gathered into 64 bits and a power of ten. For f32 this is scaled in double with an error of a few units in
// the last of 53 places, which settles the rounding to 24 places unless the result is that close to the middle of two floats;
// for f64 the scaling is exact if the digits fit 53 bits and the power is at most 22. Everything else (about one number in a
// million for f32) is rounded exactly in decimal: the digits are shifted by powers of two until the wanted bits are the
// integer part. strtod would do too, but asks the locale what a decimal point is.
#include "number.h"

#include <math.h>
#include <string.h>

static bool is_digit(char c) { return (unsigned char)(c - '0') < 10; }

// A number taken apart: value = digits * 10^exponent, `cut` if further digits that are not 0 were left out of `digits`.
typedef struct Decimal {
    bool negative, cut;
    uint64_t digits;                    // the first 19 significant ones
    int64_t exponent;
    const char *first, *last;           // where the digits (and point) stand in the text, for the exact path
    int64_t written_exponent;           // what stood after the e
} Decimal;

// --- grammar -----------------------------------------------------------------------------------------------------------

static bool equals_word(const char *text, size_t length, const char *word)
{
    for (size_t i = 0; i < length; i++)
        if (!word[i] || (text[i] | 0x20) != word[i])
            return false;
    return word[length] == 0;
}

static bool read_special(const char *text, size_t length, double *value)
{
    bool sign = length > 0 && (*text == '-' || *text == '+');
    const char *word = text + sign;
    size_t rest = length - sign;
    double size = equals_word(word, rest, "nan") ? (double)NAN
                : equals_word(word, rest, "inf") || equals_word(word, rest, "infinity") ? (double)INFINITY : 0;
    *value = sign && *text == '-' ? -size : size;
    return size != 0;
}

static const char *read_exponent(const char *at, const char *end, int64_t *exponent)
{
    bool negative = at < end && *at == '-';
    if (at < end && (*at == '-' || *at == '+'))
        at++;
    if (at == end)
        return NULL;
    for (; at < end && is_digit(*at); at++)
        if (*exponent < 1000000)                        // far beyond any type; digits are at most 64 Ki
            *exponent = *exponent * 10 + (*at - '0');
    *exponent = negative ? -*exponent : *exponent;
    return at;
}

// A run of digits. The first 19 significant ones are gathered; beyond them, it is only noted whether anything was cut off,
// and *beyond counts them.
static const char *read_run(const char *at, const char *end, Decimal *number, int64_t *beyond)
{
    uint64_t digits = number->digits;
    for (; at < end && is_digit(*at); at++) {
        if (digits < 1000000000000000000u)              // 18 digits so far, a 19th fits
            digits = digits * 10 + (uint64_t)(*at - '0');
        else {
            number->cut |= *at != '0';
            ++*beyond;
        }
    }
    number->digits = digits;
    return at;
}

// Digits with at most one point, and at least one digit.
static const char *read_digits(const char *at, const char *end, Decimal *number)
{
    int64_t beyond = 0;
    const char *whole = at;
    at = read_run(at, end, number, &beyond);
    int64_t count = at - whole;
    number->exponent = beyond;
    if (at < end && *at == '.') {
        const char *fraction = at + 1;
        int64_t left = 0;
        at = read_run(fraction, end, number, &left);
        count += at - fraction;
        number->exponent -= at - fraction - left;
    }
    return count > 0 ? at : NULL;
}

static bool read_decimal(const char *text, size_t length, Decimal *number)
{
    const char *at = text, *end = text + length;
    *number = (Decimal){0};
    if (at < end && (*at == '-' || *at == '+'))
        number->negative = *at++ == '-';
    number->first = at;
    at = read_digits(at, end, number);
    number->last = at;
    if (at && at < end && (*at == 'e' || *at == 'E'))
        at = read_exponent(at + 1, end, &number->written_exponent);
    number->exponent += number->written_exponent;
    return at == end;
}

// --- the exact path ----------------------------------------------------------------------------------------------------

// A decimal fraction 0.d0 d1 d2 ... * 10^point. 800 digits decide between any two neighbouring doubles; `more` says that
// digits other than 0 were dropped after the last.
enum { LONG_DIGITS = 800, SHIFT_MAX = 59 };
typedef struct Long {
    int count;
    int64_t point;
    bool more;
    uint8_t digit[LONG_DIGITS];
} Long;

static void long_trim(Long *number)
{
    while (number->count > 0 && number->digit[number->count - 1] == 0)
        number->count--;
    if (number->count == 0)
        number->point = 0;
}

static void long_append(Long *number, uint8_t digit)
{
    if (number->count < LONG_DIGITS)
        number->digit[number->count++] = digit;
    else
        number->more |= digit != 0;
}

static void long_read(Long *number, const Decimal *decimal)
{
    bool point = false;
    number->count = 0;
    number->more = false;
    number->point = decimal->written_exponent;
    for (const char *at = decimal->first; at < decimal->last; at++) {
        if (*at == '.') {
            point = true;
            continue;
        }
        if (number->count == 0 && *at == '0')
            number->point -= point;                     // a zero before the first digit that counts
        else {
            long_append(number, (uint8_t)(*at - '0'));
            number->point += !point;
        }
    }
    long_trim(number);
}

// number /= 2^bits: long division from the left, digits beyond the end continue until nothing remains.
static void long_shift_right(Long *number, int bits)
{
    Long result;
    result.count = 0;
    result.point = number->point;                       // a quotient digit has the weight of the digit it comes from
    result.more = number->more;
    uint64_t rest = 0, mask = ((uint64_t)1 << bits) - 1;
    bool started = false;
    for (int i = 0; i < number->count || rest > 0; i++) {
        rest = rest * 10 + (i < number->count ? number->digit[i] : 0u);
        uint8_t digit = (uint8_t)(rest >> bits);
        rest &= mask;
        started |= digit != 0;
        if (started)
            long_append(&result, digit);
        else
            result.point--;
        if (i >= number->count && result.count == LONG_DIGITS) {
            result.more |= rest > 0;
            break;
        }
    }
    long_trim(&result);
    *number = result;
}

// number *= 2^bits: from the right with a carry; at most 19 new digits appear on the left.
static void long_shift_left(Long *number, int bits)
{
    uint8_t wide[LONG_DIGITS + 20];
    int at = LONG_DIGITS + 20;
    uint64_t carry = 0;
    for (int i = number->count - 1; i >= 0 || carry > 0; i--) {
        carry += i >= 0 ? (uint64_t)number->digit[i] << bits : 0;
        wide[--at] = (uint8_t)(carry % 10);
        carry /= 10;
    }
    int count = LONG_DIGITS + 20 - at;
    number->point += count - number->count;
    number->count = 0;
    for (int i = 0; i < count; i++)
        long_append(number, wide[at + i]);
    long_trim(number);
}

static void long_shift(Long *number, int64_t bits)
{
    for (int step; bits > 0; bits -= step) {
        step = bits < SHIFT_MAX ? (int)bits : SHIFT_MAX;
        long_shift_left(number, step);
    }
    for (int step; bits < 0; bits += step) {
        step = -bits < SHIFT_MAX ? (int)-bits : SHIFT_MAX;
        long_shift_right(number, step);
    }
}

// The number rounded to an integer, ties to even. It is below 2^54.
static uint64_t long_round(const Long *number)
{
    uint64_t whole = 0;
    int64_t i = 0;
    for (; i < number->point; i++)
        whole = whole * 10 + (i < number->count ? number->digit[i] : 0u);
    if (number->point < 0 || number->point >= number->count)
        return whole;
    bool tie = number->digit[number->point] == 5 && number->point + 1 == number->count && !number->more;
    bool up = tie ? (whole & 1) != 0 : number->digit[number->point] >= 5;
    return whole + up;
}

// By how many bits to divide next, on the way to 0.5 <= number < 1; 0 when there. Three bits per decimal place never overshoots.
static int step_to_unit(const Long *number)
{
    int64_t step = number->point > 1 ? 3 * (number->point - 1) : number->point == 1 ? 1 : 3 * number->point;
    if (number->point == 0)
        step = number->digit[0] < 5 ? -1 : 0;
    return step > SHIFT_MAX ? SHIFT_MAX : step < -SHIFT_MAX ? -SHIFT_MAX : (int)step;
}

// value = mantissa * 2^exponent with `places` binary places, the exponent no less than `least` (subnormals).
static double round_exactly(const Decimal *decimal, int places, int least)
{
    Long number;
    int exponent = 0;                                   // decimal = number * 2^exponent
    long_read(&number, decimal);
    int64_t far = places == 24 ? 60 : 400;              // powers of ten beyond any value of the type
    if (number.count == 0 || number.point < -far)
        return 0;
    if (number.point > far)
        return (double)INFINITY;
    for (int step; (step = step_to_unit(&number)) != 0; exponent += step)
        long_shift(&number, -step);
    int unit = exponent - places < least ? least : exponent - places;
    long_shift(&number, exponent - unit);
    return ldexp((double)long_round(&number), unit);
}

// --- the fast path -----------------------------------------------------------------------------------------------------

static const double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

static double scaled(double digits, int64_t exponent)
{
    for (; exponent > 22; exponent -= 22)
        digits *= powers[22];
    for (; exponent < -22; exponent += 22)
        digits /= powers[22];
    return exponent < 0 ? digits / powers[-exponent] : digits * powers[exponent];
}

// At most: half a unit for the digits, one for digits cut off, half for each of four scalings; 16 leaves room.
static bool settles_f32(double near)
{
    uint64_t bits;
    memcpy(&bits, &near, sizeof bits);
    int64_t to_middle = (int64_t)(bits & 0x1FFFFFFF) - 0x10000000;
    return near >= 1.1755e-38 && near <= 3.4e38 && (to_middle > 16 || to_middle < -16);
}

static MlrtNumber finish_f64(double size, bool negative, double *value)
{
    if (isinf(size))
        return MLRT_NUMBER_RANGE;
    *value = negative ? -size : size;
    return MLRT_NUMBER_OK;
}

MlrtNumber mlrt_number_f32(const char *text, size_t length, float *value)
{
    Decimal number;
    double wide;
    if (!read_decimal(text, length, &number)) {
        bool special = read_special(text, length, &wide);
        *value = special ? (float)wide : *value;
        return special ? MLRT_NUMBER_SPECIAL : MLRT_NUMBER_NONE;
    }
    if (number.digits == 0) {
        *value = number.negative ? -0.0f : 0.0f;
        return MLRT_NUMBER_OK;
    }
    if (number.digits < 1u << 24 && !number.cut && number.exponent <= 0 && number.exponent >= -10) {
        float exact = (float)number.digits / (float)powers[-number.exponent];
        *value = number.negative ? -exact : exact;      // both operands are exact floats, one rounding
        return MLRT_NUMBER_OK;
    }
    double near = number.exponent > -66 && number.exponent < 66 ? scaled((double)number.digits, number.exponent) : 0;
    if (!settles_f32(near))
        near = round_exactly(&number, 24, -149);
    if (near > 3.4028234663852886e38)
        return MLRT_NUMBER_RANGE;
    *value = (float)(number.negative ? -near : near);
    return MLRT_NUMBER_OK;
}

MlrtNumber mlrt_number_f64(const char *text, size_t length, double *value)
{
    Decimal number;
    if (!read_decimal(text, length, &number)) {
        double special;
        if (!read_special(text, length, &special))
            return MLRT_NUMBER_NONE;
        *value = special;
        return MLRT_NUMBER_SPECIAL;
    }
    bool exact = number.digits <= (uint64_t)1 << 53 && !number.cut && number.exponent >= -22 && number.exponent <= 22;
    double size = exact ? scaled((double)number.digits, number.exponent) : round_exactly(&number, 53, -1074);
    return finish_f64(size, number.negative, value);
}

MlrtNumber mlrt_number_i64(const char *text, size_t length, int64_t *value)
{
    Decimal shape;
    const char *at = text, *end = text + length;
    if (!read_decimal(text, length, &shape)) {
        double special;
        return read_special(text, length, &special) ? MLRT_NUMBER_FRACTION : MLRT_NUMBER_NONE;
    }
    int64_t sum = 0;
    at += at < end && (*at == '-' || *at == '+');
    for (; at < end && is_digit(*at); at++) {
        int digit = shape.negative ? '0' - *at : *at - '0';
        if (__builtin_mul_overflow(sum, (int64_t)10, &sum) || __builtin_add_overflow(sum, (int64_t)digit, &sum))
            return MLRT_NUMBER_RANGE;
    }
    if (at < end && *at == '.')
        for (at++; at < end && *at == '0'; at++)
            continue;
    if (at < end)
        return MLRT_NUMBER_FRACTION;
    *value = sum;
    return MLRT_NUMBER_OK;
}
