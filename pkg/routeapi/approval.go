package routeapi

import "arizuko/pkg/msg"

// ApprovalPath is the endpoint of routd that connects a chat to a group.
const ApprovalPath = "/v1/approvals"

// Approval asks to connect a chat without a group. The group is registered if it is not; the same
// request again changes nothing.
type Approval struct {
	Code    string       `json:"code"` // of the chat's request, for the log
	ChatJID string       `json:"chat_jid"`
	Kind    msg.ChatKind `json:"kind"` // "" is guessed from the address
	Folder  string       `json:"folder"`
	By      string       `json:"by"` // the operator, for the log
}

// Approved is the answer.
type Approved struct {
	ChatJID string      `json:"chat_jid"` // the present address, if the chat was moved
	Folder  string      `json:"folder"`
	Created bool        `json:"created"` // the group is new
	Routes  []msg.Route `json:"routes"`  // those added, none if they were there
	// Shared are the match expressions of other routes that lead to the group, "" being everything:
	// their chats share its files and sessions. Of many the first 20.
	Shared []string `json:"shared"`
}
