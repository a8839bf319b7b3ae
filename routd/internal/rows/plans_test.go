package rows

import (
	"testing"

	"arizuko/pkg/store/storetest"
)

// TestQueryPlans has the expected plan of every statement. A comment says why one may have SCAN or TEMP B-TREE.
func TestQueryPlans(t *testing.T) {
	storetest.CheckPlans(t, map[string][2]string{
		"queryClaimTurns": {queryClaimTurns, "COMPOUND QUERY\n" +
			"LEFT-MOST SUBQUERY\n" +
			"CO-ROUTINE n\n" +
			"SEARCH turns USING COVERING INDEX turns_claims (chat_jid=? AND place=?)\n" +
			"SCAN n\n" +
			"UNION ALL\n" +
			"CO-ROUTINE o\n" +
			"SEARCH turns USING INDEX turns_open_claims (chat_jid=? AND place=?)\n" +
			"SCAN o"},
		"queryClaim": {queryClaim, "SEARCH t USING INTEGER PRIMARY KEY (rowid=?)\n" +
			"SEARCH p USING INTEGER PRIMARY KEY (rowid=?) LEFT-JOIN\n" +
			"SEARCH o USING INTEGER PRIMARY KEY (rowid=?)\n" +
			"SEARCH q USING INTEGER PRIMARY KEY (rowid=?)\n" +
			"CORRELATED SCALAR SUBQUERY 1\n" +
			"SEARCH r USING INDEX messages_turn (turn_id=?)\n" +
			"CORRELATED SCALAR SUBQUERY 2\n" +
			"SEARCH r USING INDEX messages_turn (turn_id=?)\n" +
			"CORRELATED SCALAR SUBQUERY 3\n" +
			"SEARCH m USING INDEX messages_turn (turn_id=?)\n" +
			"CORRELATED SCALAR SUBQUERY 4\n" +
			"SEARCH m USING INDEX messages_turn (turn_id=?)\n" +
			"SEARCH d USING PRIMARY KEY (message_id=?)"},
		"queryDeliveriesRead": {queryDeliveriesRead, "SCAN CONSTANT ROW\n" +
			"SCALAR SUBQUERY 1\n" +
			"SEARCH cursors USING PRIMARY KEY (daemon=? AND key=?)\n" +
			"SCALAR SUBQUERY 2\n" +
			"SEARCH counters USING PRIMARY KEY (name=?)"},
	})
}
