package store

import (
	"context"
	"errors"
	"fmt"

	"arizuko/pkg/msg"
)

// RequestState is the state of a request.
type RequestState string

// States of a request; all but pending are final.
const (
	RequestPending  RequestState = "pending"
	RequestApproved RequestState = "approved"
	RequestRejected RequestState = "rejected"
	RequestExpired  RequestState = "expired"
)

// Who decided a request, if it was no operator.
const (
	DecidedByRoutes = "routes" // a route was added that leads from the chat to a group, or elsewhere
	DecidedByTime   = "time"   // no operator decided in time
	DecidedByMove   = "move"   // the chat moved to an address that had a request already
)

// Request is one row of onboarding_requests: a chat without a group that asks to be connected.
// Times are unix ms. Sender, SenderName, Title and Sample are what strangers wrote.
type Request struct {
	Code       string
	ChatJID    string
	Kind       msg.ChatKind
	Sender     string
	SenderName string
	Title      string // of the chat, the present one where it is known
	Sample     string // the beginning of the message that asked
	ThreadID   string // where the chat asked
	State      RequestState
	Folder     string // of an approved request; of a pending one what it is being approved into, else ""
	DecidedBy  string // an operator, or one of the constants; "" for a pending one that is not being approved
	DecidedAt  int64  // 0 while it is pending
	Reason     string // why it was rejected, in an operator's words
	CreatedAt  int64
}

// Noted reports whether an operator has approved the request, and the chat is not known to be
// connected yet.
func (r *Request) Noted() bool { return r.State == RequestPending && r.Folder != "" }

func scanRequest(scan Scan) (*Request, error) {
	var r Request
	err := scan(&r.Code, &r.ChatJID, &r.Kind, &r.Sender, &r.SenderName, &r.Title, &r.Sample, &r.ThreadID,
		&r.State, &r.Folder, &r.DecidedBy, &r.DecidedAt, &r.Reason, &r.CreatedAt)
	if err != nil {
		return nil, fmt.Errorf("scan request: %w", err)
	}
	return &r, nil
}

func (r Reader) ReadRequests(ctx context.Context, query string, args ...any) ([]*Request, error) {
	return All(ctx, r, scanRequest, query, args...)
}

// PendingRequest returns a chat's pending request, by its present or a former address; nil if it has none.
func (r Reader) PendingRequest(ctx context.Context, chatJID string) (*Request, error) {
	jid, err := r.Address(ctx, chatJID)
	if err != nil {
		return nil, err
	}
	return First(r.ReadRequests(ctx, queryPendingRequest, jid))
}

// LastDecidedRequest returns the newest request of a chat that is approved, rejected or expired, by
// the chat's present or a former address; nil if it has none.
func (r Reader) LastDecidedRequest(ctx context.Context, chatJID string) (*Request, error) {
	jid, err := r.Address(ctx, chatJID)
	if err != nil {
		return nil, err
	}
	return First(r.ReadRequests(ctx, queryLastDecided, jid))
}

// Requests returns the newest requests in a state, "" for all states; at most limit.
func (r Reader) Requests(ctx context.Context, state RequestState, limit int) ([]*Request, error) {
	return r.ReadRequests(ctx, queryRequests, state, limit)
}

// DirectChat returns the direct chat in which a user can be reached: that with the user's own
// address, else the one with the user's newest message. "" is none, also while the user blocks the bot.
func (r Reader) DirectChat(ctx context.Context, sender string) (jid string, err error) {
	own, err := r.Chat(ctx, sender)
	switch {
	case err != nil:
		return "", err
	case own != nil && own.Kind == msg.ChatDM:
		jid = sender
	default:
		platform, _ := msg.SplitJID(sender)
		if _, err = r.Get(ctx, []any{&jid}, queryDirectChat, platform, sender); err != nil || jid == "" {
			return "", err
		}
	}
	last := ""
	if _, err = r.Get(ctx, []any{&last}, queryLastVerb, jid); err != nil || last == msg.VerbLeave {
		return "", err
	}
	return jid, nil
}

// noteMerged tells the operator of an approval that ends since its chat moves to an address that is being
// approved, too: the other approval connects the chat.
func (tx *Tx) noteMerged(from, to string, now int64) error {
	ends, err := First(tx.ReadRequests(Uncancelled(), queryPendingRequest, from))
	if err != nil || ends == nil || !ends.Noted() {
		return err
	}
	stays, err := First(tx.ReadRequests(Uncancelled(), queryPendingRequest, to))
	if err != nil || stays == nil || !stays.Noted() {
		return err
	}
	jid, err := tx.DirectChat(Uncancelled(), ends.DecidedBy)
	if err != nil || jid == "" || msg.AddressedFolder(jid) != "" {
		return err
	}
	_, _, err = tx.PutMessage(&msg.Message{
		ChatJID: jid, Direction: msg.Out, IsBot: true, Timestamp: now, ReceivedAt: now, Source: msg.SourceNotice,
		OutState: OutStateOf(jid),
		Content: fmt.Sprintf("Request %s, which you approved, ended: its chat moved, and request %s of its present address is being approved into the group %s.",
			ends.Code, stays.Code, stays.Folder),
	})
	return err
}

// PutAudit records what an operator did.
func (tx *Tx) PutAudit(who, what, detail string, now int64) error {
	if who == "" || what == "" {
		return errors.New("an audit row needs who and what")
	}
	return tx.Exec(insertAudit, now, CleanName(who), CleanName(what), CleanName(detail))
}
