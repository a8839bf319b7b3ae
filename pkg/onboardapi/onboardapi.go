// Package onboardapi has the wire types of POST /v1/requests, by which gated asks onbod to open a request for
// a chat without a group.
package onboardapi

import (
	"time"

	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/msg"
)

// Path is the endpoint of onbod.
const Path = "/v1/requests"

// RejectedFor is how long a rejected chat makes no new request.
const RejectedFor = 24 * time.Hour

// Limited is the state of what was asked beyond the limits: there is no request.
const Limited factrows.RequestState = "limited"

// Ask is a message of a chat without a group. Sender, SenderName, Title and Sample are texts of
// strangers and may be empty.
type Ask struct {
	ChatJID    string       `json:"chat_jid"`
	Sender     string       `json:"sender"`
	SenderName string       `json:"sender_name"`
	Title      string       `json:"title"`
	Kind       msg.ChatKind `json:"kind"` // "" is guessed from the address
	Sample     string       `json:"sample"`
	ThreadID   string       `json:"thread_id"` // where the notices go
}

// Asked says what happened to it.
type Asked struct {
	Code    string `json:"code"`    // "" if limited
	Created bool   `json:"created"` // the request is new
	// pending, or Limited, or rejected within a day, or approved within a minute
	State factrows.RequestState `json:"state"`
}
