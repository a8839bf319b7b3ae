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
		"deleteExpired":    {deleteExpired, "SCAN processes"},
		"queryExpired":     {queryExpired, "SCAN processes"},
		"deleteHolder":     {deleteHolder, "SEARCH processes USING INTEGER PRIMARY KEY (rowid=?)\nSCALAR SUBQUERY 1\nSEARCH l USING PRIMARY KEY (name=?)"},
		"putLease":         {putLease, "CORRELATED SCALAR SUBQUERY 2\nSEARCH m USING INTEGER PRIMARY KEY (rowid=?)"},
		"queryRunsOfGone":  {queryRunsOfGone, "SCAN r USING INDEX runs_unended\nCORRELATED SCALAR SUBQUERY 1\nSEARCH m USING INTEGER PRIMARY KEY (rowid=?)"},
		"queryFolderOwner": {queryFolderOwner, "SCAN r USING INDEX runs_unended"},
		"queryBusyRunsOf":  {queryBusyRunsOf, "SCAN b USING INDEX runs_unended\nCORRELATED SCALAR SUBQUERY 2\nSEARCH t USING COVERING INDEX turns_run (run_id=?)\nSEARCH a USING INDEX sqlite_autoindex_asks_1 (turn_id=?)\nSEARCH t EXISTS USING COVERING INDEX turns_run (run_id=?)"},
	}
}
