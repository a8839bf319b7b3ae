package rows

import (
	"testing"

	"arizuko/pkg/store/storetest"
)

// TestQueryPlans has the expected plan of every statement. A comment says why one may have SCAN or TEMP B-TREE.
func TestQueryPlans(t *testing.T) {
	t.Parallel()
	storetest.CheckPlans(t, map[string][2]string{
		"queryProcesses": {queryProcesses, "SCAN m\n" +
			"CORRELATED SCALAR SUBQUERY 1\n" +
			"SCAN l\n" +
			"CORRELATED SCALAR SUBQUERY 2\n" +
			"SEARCH l USING PRIMARY KEY\n" +
			"USE TEMP B-TREE FOR ORDER BY"},
		"queryLeaseHolder": {queryLeaseHolder, "SEARCH l USING PRIMARY KEY (name=?)\n" +
			"SEARCH m USING INTEGER PRIMARY KEY (rowid=?)"},
		"queryLeaseOf":   {queryLeaseOf, "SEARCH l USING PRIMARY KEY (name=?)"},
		"updateReported": {updateReported, "SEARCH processes USING INTEGER PRIMARY KEY (rowid=?)"},
		"queryMoved":     {queryMoved, "SEARCH cursors USING PRIMARY KEY (daemon=? AND key=?)"},
		"insertProcess":  {insertProcess, ""},
		"deleteFormer":   {deleteFormer, "SCAN processes"},
		"deleteProcess":  {deleteProcess, "SEARCH processes USING INTEGER PRIMARY KEY (rowid=?)"},
		"deleteHolder": {deleteHolder, "SEARCH processes USING INTEGER PRIMARY KEY (rowid=?)\n" +
			"SCALAR SUBQUERY 1\n" +
			"SEARCH l USING PRIMARY KEY (name=?)"},
		"putLease": {putLease, "CORRELATED SCALAR SUBQUERY 2\n" +
			"SEARCH m USING INTEGER PRIMARY KEY (rowid=?)"},
	})
}
