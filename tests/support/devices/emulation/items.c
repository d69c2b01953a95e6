#include "items.h"
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

enum { STACK = 256 * 1024, MAX_VALUE_BYTES = 256 };
int64_t hg_item_now, hg_group_now, hg_groups_now, hg_items_now;
static ucontext_t scheduler, items[HG_MAX_ITEMS];
static char *stacks[HG_MAX_ITEMS];
static char exchanged[HG_MAX_ITEMS / HG_TEAM][HG_TEAM * MAX_VALUE_BYTES];
static int64_t scope[HG_MAX_ITEMS]; /* what an item waits for: 0 nothing, 1 its team, 2 its group, -1 it has ended */
static hg_call work;
static void **arguments;

static void wait_for(int64_t what) {
  int64_t me = hg_item_now;
  scope[me] = what;
  swapcontext(&items[me], &scheduler);
}
void hg_barrier(void) { wait_for(2); }
void hg_team_barrier(void) { wait_for(1); }

const void *hg_gather(const void *value, int64_t nbytes) {
  char *all = exchanged[hg_item_now / HG_TEAM];
  hg_team_barrier(); /* others may still read what was there */
  memcpy(all + hg_item_now % HG_TEAM * nbytes, value, (size_t)nbytes);
  hg_team_barrier();
  return all;
}
void hg_shuffle(void *value, int64_t nbytes, int from) {
  const char *all = (const char *)hg_gather(value, nbytes);
  if (from >= 0 && from < HG_TEAM) memcpy(value, all + from * nbytes, (size_t)nbytes);
}

static void entry(void) {
  work(arguments, hg_group_now, hg_groups_now, hg_item_now);
  scope[hg_item_now] = -1;
}

/* Lets those of [first, last) go on that all wait for `what`; whether there are such. */
static int release(int64_t first, int64_t last, int64_t what) {
  for (int64_t i = first; i < last; ++i)
    if (scope[i] != what) return 0;
  for (int64_t i = first; i < last; ++i) scope[i] = 0;
  return 1;
}

/* Lets a team go on until it waits for others or has ended; whether any of it did. */
static int run_team(int64_t first, int64_t last) {
  int moved = 0;
  do {
    for (int64_t i = first; i < last; ++i)
      if (scope[i] == 0) {
        hg_item_now = i;
        moved = 1;
        swapcontext(&scheduler, &items[i]);
      }
  } while (release(first, last, 1));
  return moved;
}

static int run_group(int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    if (!stacks[i]) stacks[i] = malloc(STACK);
    getcontext(&items[i]);
    items[i].uc_stack.ss_sp = stacks[i];
    items[i].uc_stack.ss_size = STACK;
    items[i].uc_link = &scheduler;
    makecontext(&items[i], entry, 0);
    scope[i] = 0;
  }
  for (;;) { /* each team goes as far as it can before the next one starts, so that a barrier that is missing is missed */
    int64_t ended = 0, moved = 0;
    for (int64_t t = 0; t < count; t += HG_TEAM) moved |= run_team(t, t + HG_TEAM < count ? t + HG_TEAM : count);
    for (int64_t i = 0; i < count; ++i) ended += scope[i] == -1;
    if (ended == count) return 0;
    moved |= release(0, count, 2);
    if (!moved) return 1;
  }
}

int hg_run(hg_call call, void **args, int64_t groups, int64_t count) {
  work = call;
  arguments = args;
  hg_groups_now = groups;
  hg_items_now = count;
  for (hg_group_now = 0; hg_group_now < groups; ++hg_group_now)
    if (run_group(count)) return 1;
  return 0;
}
