// folder.c: making and finding run folders, and the files that are written once. See folder.h.
//
// mkdir decides who gets a number when two runs start at once; runs/latest is a link that is replaced by renaming.
#define _POSIX_C_SOURCE 200809L
#include "folder.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "number.h"

MlrtPath mlrt_folder_file(const MlrtFolder *folder, const char *name)
{
    MlrtPath path;
    snprintf(path.text, sizeof path.text, "%s/%.100s", folder->path, name);
    return path;
}

static MlrtStatus fail_folder(const char *path, MlrtError *error)
{
    return mlrt_fail(error, MLRT_DISK, "%s: the folder cannot be made: %s", path, strerror(errno));
}

// Makes every folder of the path that is missing.
static MlrtStatus make_all(const char *path, MlrtError *error)
{
    char part[1200];
    snprintf(part, sizeof part, "%s", path);
    for (char *at = part + 1; *at; at++)
        if (*at == '/') {
            *at = 0;
            if (mkdir(part, 0777) != 0 && errno != EEXIST)
                return fail_folder(part, error);
            *at = '/';
        }
    return mkdir(part, 0777) != 0 && errno != EEXIST ? fail_folder(part, error) : MLRT_OK;
}

// The folder runs/NET-N with the first N that nobody has.
static MlrtStatus make_next(MlrtFolder *folder, const char *net, MlrtError *error)
{
    MlrtStatus status = make_all("runs", error);
    for (int n = 1; status == MLRT_OK && n < 1000000; n++) {
        snprintf(folder->path, sizeof folder->path, "runs/%.200s-%d", net, n);
        if (mkdir(folder->path, 0777) == 0)
            return MLRT_OK;
        if (errno != EEXIST)
            status = fail_folder(folder->path, error);
    }
    return status == MLRT_OK ? mlrt_fail(error, MLRT_DISK, "runs: no free number for a folder") : status;
}

// Best effort: a file system without links only loses the short cut.
static void link_latest(const MlrtFolder *folder)
{
    const char *name = strncmp(folder->path, "runs/", 5) == 0 ? folder->path + 5 : NULL;
    char temporary[64];
    snprintf(temporary, sizeof temporary, "runs/latest.tmp-%ld", (long)getpid());
    if (!name || !*name || strchr(name, '/'))
        return;
    if (symlink(name, temporary) != 0 || rename(temporary, "runs/latest") != 0)
        unlink(temporary);
}

static MlrtStatus set_path(MlrtFolder *folder, const char *path, MlrtError *error)
{
    size_t length = strlen(path);
    while (length > 1 && path[length - 1] == '/')
        length--;
    if (length == 0 || length >= sizeof folder->path)
        return mlrt_fail(error, MLRT_BAD_USAGE, "the name of the run folder has to have 1 to %zu bytes", sizeof folder->path - 1);
    memcpy(folder->path, path, length);
    folder->path[length] = 0;
    return MLRT_OK;
}

static MlrtFolder closed(void)
{
    return (MlrtFolder){.log.descriptor = -1, .metrics.descriptor = -1, .trace.descriptor = -1};
}

MlrtStatus mlrt_folder_make(MlrtFolder *folder, const MlrtModel *model, const char *path, MlrtError *error)
{
    *folder = closed();
    MlrtStatus status = path ? set_path(folder, path, error) : make_next(folder, model->name, error);
    if (status == MLRT_OK && path)
        status = make_all(folder->path, error);
    if (status == MLRT_OK && access(mlrt_folder_file(folder, "weights/last.safetensors").text, F_OK) == 0)
        status =
            mlrt_fail(error, MLRT_BAD_INPUT, "%s holds a run already; --resume %s goes on with it", folder->path, folder->path);
    if (status == MLRT_OK)
        status = make_all(mlrt_folder_file(folder, "weights").text, error);
    if (status == MLRT_OK)
        link_latest(folder);
    return status;
}

MlrtStatus mlrt_folder_find(MlrtFolder *folder, const char *path, MlrtError *error)
{
    char target[1024];
    *folder = closed();
    ssize_t length = path ? -1 : readlink("runs/latest", target, sizeof target - 1);
    if (!path && length < 0)
        return mlrt_fail(error, MLRT_BAD_INPUT, "runs/latest: there is no run here yet; name its folder");
    if (!path) {
        target[length] = 0;
        snprintf(folder->path, sizeof folder->path, "runs/%.1000s", target);
    } else {
        MlrtStatus status = set_path(folder, path, error);
        if (status != MLRT_OK)
            return status;
    }
    if (access(folder->path, F_OK) != 0)
        return mlrt_fail(error, MLRT_BAD_INPUT, "%s: there is no such run", folder->path);
    return MLRT_OK;
}

// --- descriptions ------------------------------------------------------------------------------------------------------

static void put_quoted(FILE *out, const char *text)
{
    fputc('"', out);
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\')
            fprintf(out, "\\%c", c);
        else if (c < ' ' || c == 127)
            fprintf(out, "\\x%02X", c);
        else
            fputc(c, out);
    }
    fputc('"', out);
}

static void put_setting(FILE *out, const MlrtSettings *settings, const MlrtSetting *setting)
{
    char text[1100];
    mlrt_settings_text(settings, setting, text, sizeof text);
    bool plain = setting->kind == MLRT_SET_REAL || setting->kind == MLRT_SET_COUNT || setting->kind == MLRT_SET_SEED ||
                 setting->kind == MLRT_SET_BOOL;
    fprintf(out, "%s: ", setting->key);
    if (plain)
        fputs(text, out);
    else
        put_quoted(out, text);
    fprintf(out, "  # %s\n", setting->origin);
}

// A line "name = value (origin)" of the model's settings as YAML.
static void put_compiled(FILE *out, const char *line, size_t length)
{
    const char *equals = memchr(line, '=', length);
    if (!equals || equals == line)
        return;
    char value[512];
    size_t rest = length - (size_t)(equals + 1 - line);
    snprintf(value, sizeof value, "%.*s", (int)(rest > 1 && rest < 500 ? rest - 1 : 0), equals + 2);
    fprintf(out, "  %.*s: ", (int)(equals - line - 1), line);
    put_quoted(out, value);
    fputc('\n', out);
}

static void put_config(FILE *out, const MlrtSettings *settings, int threads)
{
    const MlrtModel *model = settings->model;
    fprintf(out, "# The recipe of this run. The remark says where a value comes from; keys are those of --set.\nnet: ");
    put_quoted(out, model->path);
    fprintf(out, "\ncompiler: \"mlc %s\"\nfingerprint: %s\nthreads: %d\noptimizer: %s\n", model->version, model->fingerprint,
            threads, settings->recipe.optimizer);
    for (int i = 0; i < settings->count; i++)
        put_setting(out, settings, &settings->setting[i]);
    fprintf(out, "compiled:%s\n", model->settings && *model->settings ? "" : " {}");
    for (const char *line = model->settings; line && *line;) {
        size_t length = strcspn(line, "\n");
        put_compiled(out, line, length);
        line += length + (line[length] == '\n');
    }
}

// What `print` writes, as a whole file.
static MlrtStatus write_config(const MlrtFolder *folder, const MlrtSettings *settings, int threads, MlrtError *error)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    if (!out)
        return mlrt_fail_memory(error, 4096, "config.yaml");
    put_config(out, settings, threads);
    bool failed = fclose(out) != 0;
    MlrtStatus status = failed ? mlrt_fail_memory(error, bytes, "config.yaml")
                               : mlrt_file_write(mlrt_folder_file(folder, "config.yaml").text, text, bytes, error);
    free(text);
    return status;
}

// A word as a shell would take it: quoted where it has to be.
static void put_word(FILE *out, const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./=,:%+";
    if (*word && !word[strspn(word, plain)]) {
        fputs(word, out);
        return;
    }
    fputc('\'', out);
    for (; *word; word++)
        if (*word == '\'')
            fputs("'\\''", out);
        else
            fputc(*word == '\n' ? ' ' : *word, out);
    fputc('\'', out);
}

// The command of this process; those of earlier ones stay above it.
static MlrtStatus note_command(const MlrtFolder *folder, int argc, char **argv, MlrtError *error)
{
    MlrtLog log;
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    for (int i = 0; i < argc && out; i++) {
        fputs(i ? " " : "", out);
        put_word(out, argv[i]);
    }
    if (!out || fclose(out) != 0) {
        free(text);
        return mlrt_fail_memory(error, bytes, "command.txt");
    }
    MlrtStatus status = mlrt_log_open(&log, mlrt_folder_file(folder, "command.txt").text, MLRT_LOG_KEEP_ALL, error);
    if (status == MLRT_OK) {
        status = mlrt_log_line(&log, error, "%.8000s", text);
        mlrt_log_close(&log, NULL);
    }
    free(text);
    return status;
}

MlrtStatus mlrt_folder_describe(const MlrtFolder *folder, const MlrtSettings *settings, int threads, int argc, char **argv,
                                MlrtError *error)
{
    const char *net = settings->model->text;
    MlrtStatus status = write_config(folder, settings, threads, error);
    if (status == MLRT_OK && net)
        status = mlrt_file_write(mlrt_folder_file(folder, "model.net").text, net, strlen(net), error);
    return status == MLRT_OK ? note_command(folder, argc, argv, error) : status;
}

// The part of each sample as a byte; MLRT_PARTS: none.
static uint8_t *parts_of(const MlrtDataset *data)
{
    uint8_t *part = mlrt_alloc_array((size_t)data->rows, 1);
    if (part)
        memset(part, MLRT_PARTS, (size_t)data->rows);
    for (int p = 0; p < MLRT_PARTS && part; p++)
        for (int64_t i = 0; i < data->part[p].rows; i++)
            part[data->part[p].row[i]] = (uint8_t)p;
    return part;
}

MlrtStatus mlrt_folder_split(const MlrtFolder *folder, const MlrtDataset *data, MlrtError *error)
{
    MlrtWriter writer;
    char line[64] = "row,part\n";
    uint8_t *part = parts_of(data);
    MlrtStatus status = part ? mlrt_writer_begin(&writer, mlrt_folder_file(folder, "split.csv").text, error)
                             : mlrt_fail_memory(error, (size_t)data->rows, "split.csv");
    if (status != MLRT_OK) {
        free(part);
        return status;
    }
    status = mlrt_writer_put(&writer, line, strlen(line), error);
    for (int64_t row = 0; row < data->rows && status == MLRT_OK; row++) {
        snprintf(line, sizeof line, "%" PRId64 ",%s\n", row, part[row] < MLRT_PARTS ? data->part[part[row]].name : "");
        status = mlrt_writer_put(&writer, line, strlen(line), error);
    }
    if (status == MLRT_OK)
        status = mlrt_writer_commit(&writer, error);
    mlrt_writer_abandon(&writer);
    free(part);
    return status;
}

// --- logs --------------------------------------------------------------------------------------------------------------

static MlrtStatus metrics_header(MlrtFolder *folder, const MlrtModel *model, MlrtError *error)
{
    char line[4096] = "step,epoch,lr,train_loss,valid_loss";
    for (int i = 0; i < model->n_metrics; i++)
        if (strcmp(model->metric[i].finish, "confusion") != 0) {
            size_t used = strlen(line);
            snprintf(line + used, sizeof line - used, ",valid_%.200s", model->metric[i].name);
        }
    size_t used = strlen(line);
    snprintf(line + used, sizeof line - used, ",seconds");
    return mlrt_log_line(&folder->metrics, error, "%s", line);
}

// The step that a line is of: {"step":12,… or 12,…; -1 for others, such as a header.
static int64_t line_step(const char *line, size_t length)
{
    static const char key[] = "{\"step\":";
    size_t skip = length > sizeof key - 1 && memcmp(line, key, sizeof key - 1) == 0 ? sizeof key - 1 : 0, digits = skip;
    while (digits < length && line[digits] >= '0' && line[digits] <= '9')
        digits++;
    int64_t step = -1;
    if (digits > skip && mlrt_number_i64(line + skip, digits - skip, &step) != MLRT_NUMBER_OK)
        step = -1;
    return step;
}

// The number behind "seconds": in a line; false if it has none.
static bool line_seconds(const char *line, size_t length, double *seconds)
{
    static const char key[] = "\"seconds\":";
    for (size_t i = 0; i + sizeof key - 1 < length; i++)
        if (memcmp(line + i, key, sizeof key - 1) == 0) {
            const char *number = line + i + sizeof key - 1;
            size_t digits = 0;
            while (number + digits < line + length && strchr(".0123456789", number[digits]))
                digits++;
            return mlrt_number_f64(number, digits, seconds) == MLRT_NUMBER_OK;
        }
    return false;
}

// Opens a log and keeps its lines up to `step`, which it finds from the end. *seconds, if there is one to fill: what the last
// kept line with a time says.
static MlrtStatus open_log(MlrtLog *log, const char *path, int64_t step, double *seconds, MlrtError *error)
{
    MlrtFile file = {0};
    uint64_t keep = 0;
    if (step > 0 && access(path, F_OK) == 0) {
        MlrtStatus status = mlrt_file_open(path, &file, error);
        if (status != MLRT_OK)
            return status;
        const char *text = (const char *)file.at;
        bool timed = !seconds;
        for (size_t end = file.bytes, from; end > 0 && !(keep > 0 && timed); end = from) {
            for (from = end - 1; from > 0 && text[from - 1] != '\n'; from--)
                ;
            bool whole = text[end - 1] == '\n';
            if (keep == 0 && whole && line_step(text + from, end - from) <= step)
                keep = end;
            if (keep > 0 && !timed)
                timed = line_seconds(text + from, end - from, seconds);
        }
        mlrt_file_close(&file);
    }
    return mlrt_log_open(log, path, keep, error);
}

MlrtStatus mlrt_folder_open_logs(MlrtFolder *folder, const MlrtModel *model, int64_t step, const char *trace, double *seconds,
                                 MlrtError *error)
{
    MlrtStatus status = open_log(&folder->log, mlrt_folder_file(folder, "log.jsonl").text, step, seconds, error);
    if (status == MLRT_OK)
        status = open_log(&folder->metrics, mlrt_folder_file(folder, "metrics.csv").text, step, NULL, error);
    if (status == MLRT_OK && folder->metrics.bytes == 0)
        status = metrics_header(folder, model, error);
    if (status == MLRT_OK && trace)
        status = open_log(&folder->trace, trace, step, NULL, error);
    return status;
}

void mlrt_folder_close(MlrtFolder *folder)
{
    mlrt_log_close(&folder->log, NULL);
    mlrt_log_close(&folder->metrics, NULL);
    mlrt_log_close(&folder->trace, NULL);
}

// --- kept weights ------------------------------------------------------------------------------------------------------

// Removes the oldest one if there are more than `count`; true if it did.
static bool remove_oldest(const char *weights, int count)
{
    int found = 0;
    int64_t oldest = INT64_MAX;
    DIR *entries = opendir(weights);
    for (struct dirent *entry; entries && (entry = readdir(entries));) {
        int64_t step;
        int end = 0;
        if (sscanf(entry->d_name, "step-%" SCNd64 ".safetensors%n", &step, &end) == 1 && end > 0 && !entry->d_name[end]) {
            found++;
            oldest = step < oldest ? step : oldest;
        }
    }
    bool removed = false;
    if (entries && found > count) {
        char name[64];
        snprintf(name, sizeof name, "step-%08" PRId64 ".safetensors", oldest);
        removed = unlinkat(dirfd(entries), name, 0) == 0;
    }
    if (entries)
        closedir(entries);
    return removed;
}

void mlrt_folder_thin(const MlrtFolder *folder, int count)
{
    while (remove_oldest(mlrt_folder_file(folder, "weights").text, count))
        ;
}
