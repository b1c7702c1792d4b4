/* What the C and C++ shapes peers share: options, output lines, the moving shape, Ctrl-C.
 * Included once per program. */
#ifndef INTEROP_SHAPES_H
#define INTEROP_SHAPES_H

#include <getopt.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { AREA_WIDTH = 240, AREA_HEIGHT = 270, COLOR_SIZE = 129 };
enum { EXIT_ARGUMENTS = 1, EXIT_SETUP = 2, EXIT_RUN = 3 };

typedef struct shapes_options {
  bool publish, subscribe;
  bool best_effort;
  bool print_written;
  int domain;
  int history_depth;            /* -1 default, 0 keep all */
  int deadline_ms;              /* 0 none */
  int ownership_strength;       /* -1 shared */
  const char *topic;
  const char *color;            /* NULL: BLUE, no filter */
  const char *partition;        /* NULL default */
  char durability;              /* v l t p */
  int data_representation;      /* 1 or 2 */
  int shape_size;               /* 0 grows by one a sample */
  int size_modulo;              /* a size that grows begins again at 1 after this one; 0 never */
  int write_period_ms, read_period_ms;
  int lifespan_ms;              /* 0 none */
  int iterations;               /* 0 until Ctrl-C */
  int instances;
  char final_state;             /* 0, u or d */
  int additional_payload_size;
  const char *filter;           /* NULL: none */
} shapes_options;

typedef struct shapes_motion {
  int32_t x, y, size, x_step, y_step;
} shapes_motion;

static volatile sig_atomic_t shapes_stopped;

static void shapes_on_interrupt(int signal_number)
{
  (void) signal_number;
  shapes_stopped = 1;
}

static void shapes_install_interrupt(void)
{
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_handler = shapes_on_interrupt;
  sigaction(SIGINT, &action, NULL);
  sigaction(SIGTERM, &action, NULL);
}

/* Prints one line at once. */
static void shapes_say(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void shapes_say(const char *format, ...)
{
  va_list arguments;
  flockfile(stdout);
  va_start(arguments, format);
  vprintf(format, arguments);
  va_end(arguments);
  putchar('\n');
  fflush(stdout);
  funlockfile(stdout);
}

static void shapes_say_sample(const char *topic, const char *color, int x, int y, int size,
                              const uint8_t *payload, uint32_t payload_size)
{
  if (payload_size > 0)
    shapes_say("%-10s %-10s %03d %03d [%d] {%u}", topic, color, x, y, size, payload[payload_size - 1]);
  else
    shapes_say("%-10s %-10s %03d %03d [%d]", topic, color, x, y, size);
}

/* Sleeps in short steps, so that Ctrl-C is noticed whichever thread takes the signal. */
static void shapes_sleep_ms(int duration_ms)
{
  while (duration_ms > 0 && !shapes_stopped) {
    const int step_ms = duration_ms < 20 ? duration_ms : 20;
    const struct timespec step = { 0, step_ms * 1000000L };
    nanosleep(&step, NULL);
    duration_ms -= step_ms;
  }
}

/* The colour of instance `index`: BLUE, BLUE1, BLUE2, ... */
static void shapes_instance_color(const shapes_options *options, int index, char color[COLOR_SIZE])
{
  const char *base = options->color ? options->color : "BLUE";
  if (index > 0)
    snprintf(color, COLOR_SIZE, "%s%d", base, index);
  else
    snprintf(color, COLOR_SIZE, "%s", base);
}

static shapes_motion shapes_start_motion(const shapes_options *options)
{
  shapes_motion motion;
  srandom((unsigned) time(NULL));
  motion.x = (int32_t) (random() % AREA_WIDTH);
  motion.y = (int32_t) (random() % AREA_HEIGHT);
  motion.x_step = (int32_t) (random() % 5) + 1;
  motion.y_step = (int32_t) (random() % 5) + 1;
  motion.size = options->shape_size;
  return motion;
}

static void shapes_bounce(int32_t *position, int32_t *step, int32_t limit)
{
  *position += *step;
  if (*position < 0) {
    *position = 0;
    *step = -*step;
  } else if (*position > limit) {
    *position = limit;
    *step = -*step;
  }
}

static void shapes_move(const shapes_options *options, shapes_motion *motion)
{
  shapes_bounce(&motion->x, &motion->x_step, AREA_WIDTH);
  shapes_bounce(&motion->y, &motion->y_step, AREA_HEIGHT);
  if (options->shape_size == 0)
    motion->size = (options->size_modulo == 0 ? motion->size : motion->size % options->size_modulo) + 1;
}

static const char *shapes_policy_name(int id)
{
  static const char *const names[] = {
    "INVALID", "USERDATA", "DURABILITY", "PRESENTATION", "DEADLINE", "LATENCYBUDGET", "OWNERSHIP",
    "OWNERSHIPSTRENGTH", "LIVELINESS", "TIMEBASEDFILTER", "PARTITION", "RELIABILITY",
    "DESTINATIONORDER", "HISTORY", "RESOURCELIMITS", "ENTITYFACTORY", "WRITERDATALIFECYCLE",
    "READERDATALIFECYCLE", "TOPICDATA", "GROUPDATA", "TRANSPORTPRIORITY", "LIFESPAN",
    "DURABILITYSERVICE", "DATAREPRESENTATION", "TYPECONSISTENCYENFORCEMENT"
  };
  const int count = (int) (sizeof names / sizeof names[0]);
  return id > 0 && id < count ? names[id] : "UNKNOWN";
}

static int shapes_number(const char *name, const char *text, int least)
{
  char *end = NULL;
  const long value = strtol(text, &end, 10);
  if (*text == '\0' || *end != '\0' || value < least || value > 0x7fffffffL) {
    fprintf(stderr, "%s: '%s' is no number from %d\n", name, text, least);
    exit(EXIT_ARGUMENTS);
  }
  return (int) value;
}

static char shapes_letter(const char *name, const char *text, const char *allowed)
{
  if (strlen(text) != 1 || strchr(allowed, *text) == NULL) {
    fprintf(stderr, "%s: '%s' is none of %s\n", name, text, allowed);
    exit(EXIT_ARGUMENTS);
  }
  return *text;
}

/* Ends the program unless the arguments make sense. */
static shapes_options shapes_parse(int argc, char **argv)
{
  static const struct option long_options[] = {
    { "write-period", required_argument, NULL, 1001 },
    { "read-period", required_argument, NULL, 1002 },
    { "lifespan", required_argument, NULL, 1003 },
    { "num-iterations", required_argument, NULL, 1004 },
    { "num-instances", required_argument, NULL, 1005 },
    { "final-instance-state", required_argument, NULL, 1006 },
    { "additional-payload-size", required_argument, NULL, 1007 },
    { "cft", required_argument, NULL, 1008 },
    { "size-modulo", required_argument, NULL, 1009 },
    { "time-filter", required_argument, NULL, 1100 },
    { "num-topics", required_argument, NULL, 1100 },
    { "access-scope", required_argument, NULL, 1100 },
    { "coherent", no_argument, NULL, 1100 },
    { "ordered", no_argument, NULL, 1100 },
    { NULL, 0, NULL, 0 }
  };
  shapes_options options;
  memset(&options, 0, sizeof options);
  options.history_depth = -1;
  options.ownership_strength = -1;
  options.topic = "Square";
  options.durability = 'v';
  options.data_representation = 1;
  options.shape_size = 20;
  options.write_period_ms = 33;
  options.read_period_ms = 100;
  options.instances = 1;
  int letter, index = 0;
  while ((letter = getopt_long(argc, argv, "PSbrwd:k:f:s:t:c:p:D:x:z:", long_options, &index)) != -1) {
    const char *name = letter > 1000 ? long_options[index].name : "option";
    switch (letter) {
      case 'P': options.publish = true; break;
      case 'S': options.subscribe = true; break;
      case 'b': options.best_effort = true; break;
      case 'r': options.best_effort = false; break;
      case 'w': options.print_written = true; break;
      case 'd': options.domain = shapes_number("-d", optarg, 0); break;
      case 'k': options.history_depth = shapes_number("-k", optarg, -1); break;
      case 'f': options.deadline_ms = shapes_number("-f", optarg, 0); break;
      case 's': options.ownership_strength = shapes_number("-s", optarg, -1); break;
      case 't': options.topic = optarg; break;
      case 'c': options.color = optarg; break;
      case 'p': options.partition = optarg; break;
      case 'D': options.durability = shapes_letter("-D", optarg, "vltp"); break;
      case 'x': options.data_representation = shapes_letter("-x", optarg, "12") - '0'; break;
      case 'z': options.shape_size = shapes_number("-z", optarg, 0); break;
      case 1001: options.write_period_ms = shapes_number(name, optarg, 0); break;
      case 1002: options.read_period_ms = shapes_number(name, optarg, 0); break;
      case 1003: options.lifespan_ms = shapes_number(name, optarg, 0); break;
      case 1004: options.iterations = shapes_number(name, optarg, 1); break;
      case 1005: options.instances = shapes_number(name, optarg, 1); break;
      case 1006: options.final_state = shapes_letter(name, optarg, "ud"); break;
      case 1007: options.additional_payload_size = shapes_number(name, optarg, 0); break;
      case 1008: options.filter = optarg; break;
      case 1009: options.size_modulo = shapes_number(name, optarg, 1); break;
      case 1100: shapes_say("--%s is not supported", name); exit(EXIT_SETUP);
      default: exit(EXIT_ARGUMENTS);
    }
  }
  if (options.publish == options.subscribe) {
    fprintf(stderr, "one of -P and -S is wanted\n");
    exit(EXIT_ARGUMENTS);
  }
  return options;
}

#endif
