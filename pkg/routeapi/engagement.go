package routeapi

// EngagementPath is where routd shows, opens and ends engagement windows.
const EngagementPath = "/v1/engagement"

// EngagementRequest opens or ends a window. JID and Topic, the place, are required.
type EngagementRequest struct {
	JID    *string `json:"jid"`
	Topic  *string `json:"topic"`
	Folder string  `json:"folder"`      // the group to engage; not needed to end a window
	TTL    *int64  `json:"ttl_seconds"` // at most 0 ends the window; nil is routd's default
	// Caller is the group on whose behalf the request is made, "" for an operator.
	Caller string `json:"caller_folder"`
	// Sender is for whom the caller works, "" if that is not known: routes for that sender count.
	Sender string `json:"sender,omitempty"`
}

// Engagement is the stored engagement of a place; unset values are nil.
type Engagement struct {
	JID       string  `json:"jid"`
	Topic     string  `json:"topic"`
	Folder    *string `json:"folder"`
	Until     *int64  `json:"engaged_until"` // unix ms
	LastReply *int64  `json:"last_reply_id"`
	EndedAt   *int64  `json:"ended_at"` // unix ms
}
