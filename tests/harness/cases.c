/* The lists of all cases. */
#include "harness/harness.h"

const case_list *harness_case_lists(int *n_lists)
{
    static case_list lists[6];
    lists[0] = harness_cases_element;
    lists[1] = harness_cases_move;
    lists[2] = harness_cases_network;
    lists[3] = harness_cases_fused;
    lists[4] = harness_cases_speed;
    lists[5] = harness_cases_attention;
    *n_lists = 6;
    return lists;
}
