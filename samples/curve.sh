#!/usr/bin/env bash
# Draws curves of a run as SVG, from its metrics.csv: a panel for each argument, a line for each column named in it.
# Usage: curve.sh RUN train_loss,valid_loss [valid_accuracy ...] >curve.svg
set -eu
run=$1
shift
awk -F, -v panels="$*" '
    NR == 1 { for (i = 1; i <= NF; i++) place[$i] = i; next }
    { rows++; for (i = 1; i <= NF; i++) cell[rows, i] = $i }
    function color(k) { return k == 1 ? "#1668b4" : k == 2 ? "#d0571a" : "#3a8a3a" }
    function is_number(text) { return text != "nan" && text != "-nan" && text != "inf" }
    function bounds(names, count,    k, r, v) {             # sets low, high
        low = 1e300; high = -1e300
        for (k = 1; k <= count; k++)
            for (r = 1; r <= rows; r++) {
                v = cell[r, place[names[k]]]
                if (is_number(v)) { if (v + 0 < low) low = v + 0; if (v + 0 > high) high = v + 0 }
            }
        if (high <= low) high = low + 1
    }
    function tick(value) { return sprintf(high - low < 0.05 ? "%.3f" : high - low < 20 ? "%.2f" : "%.0f", value) }
    function panel(p, text,    names, count, k, r, x, y, left, points) {
        count = split(text, names, ",")
        for (k = 1; k <= count; k++)
            if (!(names[k] in place)) { print "no column " names[k] > "/dev/stderr"; failed = 1; exit 1 }
        left = 60 + (p - 1) * 400
        bounds(names, count)
        for (k = 0; k <= 4; k++) {
            y = 230 - 50 * k
            printf "<line x1=\"%d\" x2=\"%d\" y1=\"%d\" y2=\"%d\" stroke=\"#ddd\"/>", left, left + 320, y, y
            printf "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%s</text>\n", left - 6, y + 4, tick(low + (high - low) * k / 4)
        }
        printf "<text x=\"%d\" y=\"250\">step 0</text><text x=\"%d\" y=\"250\" text-anchor=\"end\">%d</text>\n", left, left + 320, last
        for (k = 1; k <= count; k++) {
            points = ""
            for (r = 1; r <= rows; r++)
                if (is_number(cell[r, place[names[k]]])) {
                    x = left + 320 * cell[r, place["step"]] / last
                    points = points sprintf("%.1f,%.1f ", x, 230 - 200 * (cell[r, place[names[k]]] - low) / (high - low))
                }
            printf "<polyline points=\"%s\" fill=\"none\" stroke=\"%s\" stroke-width=\"1.6\"/>\n", points, color(k)
            printf "<text x=\"%d\" y=\"18\" style=\"fill:%s\">%s</text>\n", left + 110 * (k - 1), color(k), names[k]
        }
    }
    END {
        if (rows == 0 || failed) exit 1
        last = cell[rows, place["step"]]
        count = split(panels, panel_text, " ")
        printf "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d 260\" width=\"%d\">\n", 400 * count + 20, 400 * count + 20
        print "<style>text{font:12px sans-serif;fill:#666}</style><rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>"
        for (p = 1; p <= count; p++)
            panel(p, panel_text[p])
        print "</svg>"
    }' "$run/metrics.csv"
