package store

// retentionPlans has the expected plan of every statement in queries_retention.go.
func retentionPlans() map[string][2]string {
	return map[string][2]string{
		"queryNeededFiles": {queryNeededFiles, "COMPOUND QUERY\nLEFT-MOST SUBQUERY\nSCAN t USING INDEX turns_open\n" +
			"SEARCH m USING INDEX messages_turn (turn_id=?)\nUNION ALL\nSCAN m USING INDEX messages_outbox"},
		"queryAttachments": {queryAttachments, "SEARCH m USING INTEGER PRIMARY KEY (rowid>?)"},
	}
}
