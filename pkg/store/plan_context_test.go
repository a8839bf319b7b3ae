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
		"deleteEndedOfChat":    {deleteEndedOfChat, ofChat},
		"deleteUnmovedContext": {deleteUnmovedContext, ofChat},
	}
}
