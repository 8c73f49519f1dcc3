/* The lists of all cases. */
#include "harness/harness.h"

const case_list *harness_case_lists(int *n_lists)
{
    static case_list lists[16];
    int n = 0;
    lists[n++] = harness_cases_element;
    lists[n++] = harness_cases_move;
    lists[n++] = harness_cases_network;
    lists[n++] = harness_cases_fused;
    lists[n++] = harness_cases_speed;
    lists[n++] = harness_cases_attention;
    lists[n++] = harness_cases_recurrent;
    lists[n++] = harness_cases_rows;
    lists[n++] = harness_cases_conv;
    *n_lists = n;
    return lists;
}
