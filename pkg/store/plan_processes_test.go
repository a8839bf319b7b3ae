package store

// processPlans has the expected plan of every statement in queries_processes.go. Processes are a few dozen.
func processPlans() map[string][2]string {
	return map[string][2]string{
		"queryProcess":     {queryProcess, "SEARCH processes USING INTEGER PRIMARY KEY (rowid=?)"},
		"queryProcesses":   {queryProcesses, "SCAN m\nCORRELATED SCALAR SUBQUERY 1\nSCAN l\nCORRELATED SCALAR SUBQUERY 2\nSEARCH l USING PRIMARY KEY\nUSE TEMP B-TREE FOR ORDER BY"},
		"queryLeaseHolder": {queryLeaseHolder, "SEARCH l USING PRIMARY KEY (name=?)\nSEARCH m USING INTEGER PRIMARY KEY (rowid=?)"},
		"queryLeaseOf":     {queryLeaseOf, "SEARCH l USING PRIMARY KEY (name=?)"},
		"updateReported":   {updateReported, "SEARCH processes USING INTEGER PRIMARY KEY (rowid=?)"},
		"queryMoved":       {queryMoved, "SEARCH cursors USING PRIMARY KEY (daemon=? AND key=?)"},
		"insertProcess":    {insertProcess, noRead},
		"deleteFormer":     {deleteFormer, "SCAN processes"},
		"updateRenewed":    {updateRenewed, "SEARCH processes USING INTEGER PRIMARY KEY (rowid=?)"},
		"deleteProcess":    {deleteProcess, "SEARCH processes USING INTEGER PRIMARY KEY (rowid=?)"},

		"deleteHolder": {deleteHolder, "SEARCH processes USING INTEGER PRIMARY KEY (rowid=?)\nSCALAR SUBQUERY 1\nSEARCH l USING PRIMARY KEY (name=?)"},
		"putLease":     {putLease, "CORRELATED SCALAR SUBQUERY 2\nSEARCH m USING INTEGER PRIMARY KEY (rowid=?)"},
	}
}
