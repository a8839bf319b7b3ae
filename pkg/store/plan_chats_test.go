package store

// chatPlans has the expected plan of every statement in queries_chats.go.
func chatPlans() map[string][2]string {
	return map[string][2]string{}
}
