package onboarding

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"arizuko/onbod/internal/rows"
	"arizuko/pkg/apierr"
	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/failpoint"
	"arizuko/pkg/match"
	"arizuko/pkg/msg"
	"arizuko/pkg/routeapi"
	"arizuko/pkg/store"
)

// LocalOperator is an operator at a terminal of the machine: who can read the shared secret is one.
const LocalOperator = "local:operator"

// Approval is an operator's wish to connect a chat.
type Approval struct {
	Code   string `json:"code"`
	Folder string `json:"folder"` // "" for a new group named after the chat
	By     string `json:"by"`     // a sender who is an operator, web:<login>, or LocalOperator
}

// Rejection is an operator's wish not to.
type Rejection struct {
	Code   string `json:"code"`
	Reason string `json:"reason"` // shown in the chat, may be ""
	By     string `json:"by"`
}

// Reopening is an operator's wish to undo a rejection, or to decide on an expired request after all.
type Reopening struct {
	Code string `json:"code"`
	By   string `json:"by"`
}

// Decided is how a request stands.
type Decided struct {
	Code      string                `json:"code"`
	State     factrows.RequestState `json:"state"` // pending if routd has not answered yet
	Folder    string                `json:"folder"`
	DecidedBy string                `json:"decided_by"`
	Text      string                `json:"text"` // for the operator, markdown
}

// Approve connects a request's chat to a group. It returns forbidden for others than operators,
// bad_request for an invalid folder, not_found for an unknown code, conflict if the request is
// decided, or cannot be approved now.
func (o *Onboarding) Approve(ctx context.Context, a Approval) (Decided, error) {
	if a.Folder = strings.TrimSpace(a.Folder); a.Folder != "" {
		if err := msg.ValidFolder(a.Folder); err != nil {
			return Decided{}, apierr.New(apierr.BadRequest, "%w", err)
		}
	}
	r, unlock, err := o.open(ctx, a.Code, a.By)
	if err != nil {
		return Decided{}, err
	}
	defer unlock()
	first := !r.Noted()
	switch {
	case !first && a.Folder != "" && a.Folder != r.Folder:
		return Decided{}, inProgress(r)
	case first:
		if a.Folder == "" {
			folders, err := o.DefaultFolders(ctx, r)
			if err != nil {
				return Decided{}, err
			}
			a.Folder = folders[r.Code]
		}
		err := o.st.Write(ctx, func(tx *store.Tx) error { return rows.NoteApproval(tx, r.Code, a.Folder, a.By) })
		if err != nil {
			return Decided{}, err
		}
		r.Folder, r.DecidedBy = a.Folder, a.By
	}
	// From here on it goes on without the caller, who may have ended.
	d, err := o.connect(context.WithoutCancel(ctx), r, first)
	if errors.Is(err, errUnanswered) {
		o.wake()
		return Decided{r.Code, r.State, r.Folder, r.DecidedBy, fmt.Sprintf(
			"Request %s is approved. %s is connected to the group %s as soon as routd answers.", r.Code, chatName(r),
			r.Folder)}, nil
	}
	return d, err
}

// Reject ends a request, and says so in its chat. Its errors are those of Approve.
func (o *Onboarding) Reject(ctx context.Context, rej Rejection) (Decided, error) {
	r, unlock, err := o.open(ctx, rej.Code, rej.By)
	if err != nil {
		return Decided{}, err
	}
	defer unlock()
	if r.Noted() {
		return Decided{}, inProgress(r)
	}
	reason, now := clean(rej.Reason, maxReason), o.now()
	err = o.st.Write(ctx, func(tx *store.Tx) error {
		d := rows.RequestDecision{State: factrows.RequestRejected, By: rej.By, Reason: reason}
		if err := rows.DecideRequest(tx, r.Code, d, now); err != nil {
			return err
		}
		if err := tx.PutAudit(rej.By, "reject", r.Code+" "+r.ChatJID, now); err != nil {
			return err
		}
		return o.notify(tx, r.ChatJID, r.ThreadID, rejectedNotice(r, reason))
	})
	if err != nil {
		return Decided{}, err
	}
	o.results.WithLabelValues("rejected").Inc()
	o.log.Info("request rejected", "chat", r.ChatJID, "user", rej.By)
	text := fmt.Sprintf("Request %s is rejected. %s may ask again after a day.", r.Code, chatName(r))
	return Decided{r.Code, factrows.RequestRejected, "", rej.By, text}, nil
}

// Reopen makes a rejected or expired request pending again, and says so in its chat. Its errors are those of
// Approve.
func (o *Onboarding) Reopen(ctx context.Context, re Reopening) (Decided, error) {
	r, unlock, err := o.find(ctx, re.Code, re.By)
	if err != nil {
		return Decided{}, err
	}
	defer unlock()
	other, err := factrows.PendingRequest(ctx, o.st.Reader, r.ChatJID)
	switch {
	case err != nil:
		return Decided{}, err
	case other != nil && other.Code == r.Code:
		return Decided{}, apierr.New(apierr.Conflict, "request %s is pending", r.Code)
	case other != nil:
		return Decided{}, apierr.New(apierr.Conflict, "the chat has made another request, %s: decide on that",
			other.Code)
	case r.State == factrows.RequestApproved:
		return Decided{}, apierr.New(apierr.Conflict, "%s: to undo that, remove its routes, as with `routd routes rm`",
			decidedText(r))
	}
	now := o.now()
	err = o.st.Write(ctx, func(tx *store.Tx) error {
		if err := rows.ReopenRequest(tx, r.Code, now); err != nil {
			return err
		}
		if err := tx.PutAudit(re.By, "reopen", r.Code+" "+r.ChatJID, now); err != nil {
			return err
		}
		return o.notify(tx, r.ChatJID, r.ThreadID, reopenedNotice(r))
	})
	if err != nil {
		return Decided{}, err
	}
	o.log.Info("request reopened", "chat", r.ChatJID, "user", re.By)
	text := fmt.Sprintf("Request %s of %s is pending again. What was written there since it ended is not kept.", r.Code,
		chatName(r))
	return Decided{Code: r.Code, State: factrows.RequestPending, Text: text}, nil
}

// open finds a pending request for an operator to decide. Until the caller calls unlock no other is
// decided.
func (o *Onboarding) open(ctx context.Context, code, by string) (r *factrows.Request, unlock func(), err error) {
	r, unlock, err = o.find(ctx, code, by)
	if err == nil && r.State != factrows.RequestPending {
		unlock()
		return nil, nil, apierr.New(apierr.Conflict, "%s%s", decidedText(r), undoText(r))
	}
	return r, unlock, err
}

// find is open for requests in any state.
func (o *Onboarding) find(ctx context.Context, code, by string) (r *factrows.Request, unlock func(), err error) {
	is, err := o.isOperator(ctx, by)
	if err != nil {
		return nil, nil, err
	}
	if !is {
		return nil, nil, apierr.New(apierr.Forbidden, "%.80q is not an operator", by)
	}
	if unlock, err = o.lock(ctx); err != nil {
		return nil, nil, err
	}
	r, err = rows.Request(ctx, o.st.Reader, normalCode(code))
	switch {
	case err != nil:
	case r == nil:
		err = apierr.New(apierr.NotFound, "there is no request %.20q", strings.TrimSpace(code))
	}
	if err != nil {
		unlock()
		return nil, nil, err
	}
	return r, unlock, nil
}

// isOperator trusts the caller, who knows the shared secret, with the name of a login.
func (o *Onboarding) isOperator(ctx context.Context, by string) (bool, error) {
	platform, login := msg.SplitJID(by)
	if by == LocalOperator || platform == msg.PlatformWeb && login != "" {
		return true, nil
	}
	operators, err := o.st.Operators(ctx, o.cfg.Operators)
	return operators[by], err
}

func inProgress(r *factrows.Request) error {
	return apierr.New(apierr.Conflict, "request %s is being approved by %s into the group %s; that waits for routd",
		r.Code, r.DecidedBy, r.Folder)
}

// errUnanswered means that routd may have connected the chat, or not. Asking again is safe.
var errUnanswered = errors.New("routd has not answered")

// refusedError means that routd has changed nothing.
type refusedError struct{ error }

func (e refusedError) Unwrap() error { return e.error }

// Refused marks an error of Routd.Connect: nothing was changed by this call.
func Refused(err error) error { return refusedError{err} }

// connect finishes the approval of a request that is noted. It returns errUnanswered, or an error for
// the operator once the approval is taken back. first: routd was not asked before. Of a later time only
// its own answer says that nothing was changed, since an earlier one may have arrived. The caller
// holds the lock.
func (o *Onboarding) connect(ctx context.Context, r *factrows.Request, first bool) (Decided, error) {
	ask, cancel := context.WithTimeout(ctx, routdTimeout)
	defer cancel()
	done, err := o.routd.Connect(ask, routeapi.Approval{Code: r.Code, ChatJID: r.ChatJID, Kind: r.Kind,
		Folder: r.Folder, By: r.DecidedBy})
	kind := apierr.KindOf(err)
	switch {
	case errors.As(err, new(refusedError)) && (first || kind == apierr.BadRequest || kind == apierr.Conflict):
		o.log.Warn("chat not connected", "chat", r.ChatJID, "folder", r.Folder, "user", r.DecidedBy, "err", err)
		if undo := o.st.Write(ctx, func(tx *store.Tx) error { return rows.WithdrawApproval(tx, r.Code) }); undo != nil {
			return Decided{}, undo
		}
		return Decided{}, stillPending(r, err)
	case err != nil:
		level := slog.LevelDebug // one line for an approval, not one for each try
		if first {
			level = slog.LevelWarn
		}
		o.log.Log(ctx, level, "approval waits for routd", "chat", r.ChatJID, "folder", r.Folder, "err", err)
		return Decided{}, fmt.Errorf("%w: %w", errUnanswered, err)
	}
	failpoint.At(failpoint.Connected)
	return o.finish(ctx, r, done)
}

// stillPending says why a chat was not connected. Its kind is never Unavailable, which callers read as "onbod is down".
func stillPending(r *factrows.Request, cause error) error {
	kind := apierr.KindOf(cause)
	if kind != apierr.BadRequest && kind != apierr.Conflict {
		return apierr.New(apierr.Conflict,
			"request %s is still pending: routd, which makes groups and routes, does not answer. "+
				"Start it, and approve again", r.Code)
	}
	return apierr.New(kind, "request %s is still pending: %w", r.Code, cause)
}

// finish stores that a chat is connected, with the greeting.
func (o *Onboarding) finish(ctx context.Context, r *factrows.Request, done routeapi.Approved) (Decided, error) {
	now := o.now()
	err := o.st.Write(ctx, func(tx *store.Tx) error {
		d := rows.RequestDecision{State: factrows.RequestApproved, Folder: r.Folder, By: r.DecidedBy}
		if err := rows.DecideRequest(tx, r.Code, d, now); err != nil {
			return err
		}
		if err := tx.PutAudit(r.DecidedBy, "approve", r.Code+" "+done.ChatJID+" "+r.Folder, now); err != nil {
			return err
		}
		return o.notify(tx, done.ChatJID, r.ThreadID, greeting(r))
	})
	if err != nil {
		return Decided{}, err
	}
	o.results.WithLabelValues("approved").Inc()
	o.log.Info("request approved", "chat", done.ChatJID, "folder", r.Folder, "user", r.DecidedBy)
	text, err := o.approvedText(ctx, r, done)
	if err != nil { // it is approved all the same
		o.log.Error("chats of a group not read for the answer to an approval", "chat", done.ChatJID, "folder", r.Folder,
			"err", err)
		text = fmt.Sprintf("Connected %s to the group %s.", chatName(r), r.Folder)
	}
	return Decided{r.Code, factrows.RequestApproved, r.Folder, r.DecidedBy, text}, nil
}

// approvedText names the group that a chat was connected to, and the chats that share it.
func (o *Onboarding) approvedText(ctx context.Context, r *factrows.Request, done routeapi.Approved) (string, error) {
	if done.Created {
		text, err := o.above(ctx, r.Folder)
		return fmt.Sprintf("Connected %s to the new group %s.%s", chatName(r), r.Folder, text), err
	}
	text := fmt.Sprintf("Connected %s to the group %s, which is there already.", chatName(r), r.Folder)
	others := []string{"the group's web chat"} // each group has one, without a route
	for _, expr := range done.Shared {
		other, err := o.sharer(ctx, expr)
		if err != nil {
			return "", err
		}
		if other != "" && !slices.Contains(others, other) {
			others = append(others, other)
		}
	}
	return text + " It shares files and sessions with " + strings.Join(others, ", ") + ".", nil
}

// above says which group a new one is below: an operator may have mistyped it.
func (o *Onboarding) above(ctx context.Context, folder string) (string, error) {
	parent := msg.Parent(folder)
	if parent == "" {
		return "", nil
	}
	group, err := o.st.Group(ctx, parent)
	if err != nil || group == nil {
		return fmt.Sprintf(" There is no group %s above it.", parent), err
	}
	return fmt.Sprintf(" It is below the group %s, whose chats reach it by @name.", parent), nil
}

// sharer describes whose messages a route leads to the group.
func (o *Onboarding) sharer(ctx context.Context, expr string) (string, error) {
	jid, all := match.ChatOf(expr)
	switch {
	case all:
		return "all chats", nil
	case jid == "":
		return "messages that match " + quoted(expr), nil
	}
	chat, err := o.st.Chat(ctx, jid)
	if err != nil || chat == nil || chat.Title == "" {
		return quoted(jid), err
	}
	return fmt.Sprintf("%s (%s)", quoted(chat.Title), quoted(jid)), nil
}
