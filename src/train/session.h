/* A session's inside, for what reads and sets its variables: stoker/graph/session.h. */
#ifndef STK_TRAIN_SESSION_H
#define STK_TRAIN_SESSION_H

#include "engine/engine.h"
#include "stoker/graph/session.h"

/* Borrowed; NULL where it did not open. */
stk_engine *stk_session_engine(stk_session *session);
/* The session's first error is kept, with the text of now. Returns status. */
stk_status stk_session_keep(stk_session *session, stk_status status);

#endif
