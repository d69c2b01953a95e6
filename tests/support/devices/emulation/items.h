/* Work-items of one group as coroutines of one thread. A team is 32 neighbouring items. */
#pragma once
#include <stdint.h>
#ifdef __cplusplus
extern "C" {
#endif
enum { HG_TEAM = 32, HG_MAX_ITEMS = 1024 };
typedef void (*hg_call)(void **args, int64_t group, int64_t groups, int64_t item);

void hg_barrier(void);                                   /* until all items of the group are here */
void hg_team_barrier(void);                              /* until all items of the team are here */
void hg_shuffle(void *value, int64_t nbytes, int from);  /* value becomes that of item `from` of the team, if there is one */
const void *hg_gather(const void *value, int64_t nbytes); /* the team's values side by side, until the team's next call of this kind */
/* Runs every group in turn. 0, or 1 where items wait for others that ended or wait elsewhere. */
int hg_run(hg_call call, void **args, int64_t groups, int64_t items);
extern int64_t hg_item_now, hg_group_now, hg_groups_now, hg_items_now;
#ifdef __cplusplus
}
#endif
