package store

// contextPlans has the expected plan of every statement in queries_context.go. A chat has few objects,
// so that sorting them, or reading all of a chat's, costs little.
func contextPlans() map[string][2]string {
	const (
		objectRow = "SEARCH context_objects USING PRIMARY KEY (chat_id=? AND object_id=?)"
		ofChat    = "SEARCH context_objects USING PRIMARY KEY (chat_id=?)"
		sorted    = "\nUSE TEMP B-TREE FOR ORDER BY"
	)
	return map[string][2]string{
		"queryContextOfChat":   {queryContextOfChat, ofChat},
		"queryContextObjects":  {queryContextObjects, "SCAN context_objects"}, // all of them, at start
		"queryContextObject":   {queryContextObject, objectRow},
		"queryContextOfSource": {queryContextOfSource, ofChat + sorted},
		"queryContextIDsOf":    {queryContextIDsOf, ofChat},
		"queryContextExcess":   {queryContextExcess, ofChat + sorted},
		"putContextObject":     {putContextObject, noRead},
		"deleteContextObject":  {deleteContextObject, objectRow},
		"deleteEndedContext": {deleteEndedContext, objectRow + "\nLIST SUBQUERY 2\n" +
			"SEARCH context_objects USING COVERING INDEX context_objects_active (active_until<?)"},
		"deleteEndedOfChat":    {deleteEndedOfChat, ofChat},
		"deleteUnmovedContext": {deleteUnmovedContext, ofChat},
		"queryChatHasTopics": {queryChatHasTopics, "SCAN CONSTANT ROW\nSCALAR SUBQUERY 1\n" +
			"SEARCH platform_threads USING PRIMARY KEY (chat_jid=?)\nSCALAR SUBQUERY 2\n" +
			"SEARCH topic_threads USING PRIMARY KEY (chat_jid=?)\nSCALAR SUBQUERY 4\nCO-ROUTINE t\n" +
			"SEARCH turns USING INDEX turns_chat (chat_jid=?)\nSCAN t"}, // 100 turns
	}
}
