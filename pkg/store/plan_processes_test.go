package store

// processPlans has the expected plan of every statement in queries_processes.go. Processes are a few dozen.
func processPlans() map[string][2]string {
	return map[string][2]string{
		"queryProcess": {queryProcess, "SEARCH processes USING INTEGER PRIMARY KEY (rowid=?)"},

		"updateRenewed": {updateRenewed, "SEARCH processes USING INTEGER PRIMARY KEY (rowid=?)"},
	}
}
