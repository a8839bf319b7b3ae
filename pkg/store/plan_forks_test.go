package store

// forkPlans has the expected plan of every statement in queries_forks.go.
func forkPlans() map[string][2]string {
	return map[string][2]string{
		"queryFork":         {queryFork, "SEARCH forks USING PRIMARY KEY (chat_jid=? AND topic=?)"},
		"queryForksInside":  {queryForksInside, "SEARCH forks USING INDEX forks_open (chat_jid=? AND thread_id=?)\nUSE TEMP B-TREE FOR ORDER BY"}, // a few of a place
		"queryForkOfThread": {queryForkOfThread, "SEARCH n USING INDEX forks_own_thread (chat_jid=? AND thread_id=?)\nUSE TEMP B-TREE FOR ORDER BY"},

		"endFork": {endFork, "SEARCH forks USING PRIMARY KEY (chat_jid=? AND topic=?)"},
	}
}
