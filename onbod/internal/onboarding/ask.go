package onboarding

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"arizuko/onbod/internal/rows"
	"arizuko/pkg/apierr"
	"arizuko/pkg/facts"
	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/onboardapi"
	"arizuko/pkg/routeapi"
	"arizuko/pkg/store"
)

// Ask makes a request, unless the chat has one, with a notice in the chat and one to each operator. It
// returns a bad_request for an address that no route can name.
func (o *Onboarding) Ask(ctx context.Context, a onboardapi.Ask) (onboardapi.Asked, error) {
	if err := check(&a); err != nil {
		return onboardapi.Asked{}, err
	}
	// Most calls end here, without a write.
	done, err := o.known(ctx, o.st.Reader, a)
	if err != nil || done.State != "" {
		return o.counted(done), err
	}
	operators, err := o.operatorChats(ctx)
	if err != nil {
		return onboardapi.Asked{}, err
	}
	err = o.st.Write(ctx, func(tx *store.Tx) (err error) {
		if done, err = o.known(ctx, tx.Reader, a); err != nil || done.State != "" {
			return err
		}
		done, err = o.create(ctx, tx, a, operators)
		return err
	})
	if err != nil {
		return onboardapi.Asked{}, err
	}
	return o.counted(done), nil
}

// check returns the problem of the address, and cuts the texts.
func check(a *onboardapi.Ask) error {
	kind, err := routeapi.CheckChat(a.ChatJID, a.Kind)
	switch {
	case err != nil:
		return apierr.New(apierr.BadRequest, "%w", err)
	case len(a.Sender) > routeapi.MaxField || len(a.ThreadID) > routeapi.MaxField:
		return apierr.New(apierr.BadRequest, "sender or thread_id has more than %d bytes", routeapi.MaxField)
	}
	a.Kind = kind
	a.SenderName, a.Title, a.Sample = clean(a.SenderName, maxName), clean(a.Title, maxName), clean(a.Sample, maxSample)
	return nil
}

// known returns the decision about the chat if it needs no new request; zero if it may make one.
func (o *Onboarding) known(ctx context.Context, r store.Reader, a onboardapi.Ask) (onboardapi.Asked, error) {
	pending, err := factrows.PendingRequest(ctx, r, a.ChatJID)
	if err != nil || pending != nil {
		return asked(pending), err
	}
	last, err := factrows.LastDecidedRequest(ctx, r, a.ChatJID)
	now := o.now()
	switch {
	case err != nil:
		return onboardapi.Asked{}, err
	case last == nil:
	case last.State == factrows.RequestRejected && within(last.DecidedAt, now, onboardapi.RejectedFor),
		last.State == factrows.RequestApproved && within(last.DecidedAt, now, approvedFor):
		return asked(last), nil
	}
	counts, err := rows.CountRequests(ctx, r, a.Sender, now-limitTime.Milliseconds(), now)
	if err != nil {
		return onboardapi.Asked{}, err
	}
	if counts.OfSender >= o.cfg.MaxPerSender || counts.Made >= o.cfg.MaxPerHour || counts.Pending >= o.cfg.MaxPending {
		return onboardapi.Asked{State: onboardapi.Limited}, nil
	}
	return onboardapi.Asked{}, nil
}

func asked(r *factrows.Request) onboardapi.Asked {
	if r == nil {
		return onboardapi.Asked{}
	}
	return onboardapi.Asked{Code: r.Code, State: r.State}
}

func (o *Onboarding) counted(a onboardapi.Asked) onboardapi.Asked {
	switch {
	case a.Created:
		o.results.WithLabelValues("created").Inc()
	case a.State == onboardapi.Limited:
		o.results.WithLabelValues("limited").Inc()
	case a.State != "":
		o.results.WithLabelValues("existing").Inc()
	}
	return a
}

// operatorChats are the chats in which operators are reached, without repetition.
func (o *Onboarding) operatorChats(ctx context.Context) (chats []string, err error) {
	all, err := facts.OperatorChats(ctx, o.st.Reader, slices.Collect(maps.Keys(o.cfg.Operators)))
	return slices.Compact(slices.Sorted(maps.Values(all))), err
}

// create stores a request and its notices.
func (o *Onboarding) create(ctx context.Context, tx *store.Tx, a onboardapi.Ask, operators []string) (onboardapi.Asked,
	error) {
	code, err := o.freeCode(ctx, tx)
	if err != nil {
		return onboardapi.Asked{}, err
	}
	r := &factrows.Request{
		Code: code, ChatJID: a.ChatJID, Kind: a.Kind, Sender: a.Sender, SenderName: a.SenderName, Title: a.Title,
		Sample:   a.Sample,
		ThreadID: a.ThreadID, CreatedAt: o.now(),
	}
	if err := rows.PutRequest(tx, r); err != nil {
		return onboardapi.Asked{}, err
	}
	if r, err = rows.Request(ctx, tx.Reader, code); err != nil { // with the chat's present title
		return onboardapi.Asked{}, err
	}
	// Of a flood operators read the first requests alone: their own commands are answered in the same
	// chats, one message after another.
	counts, err := rows.CountRequests(ctx, tx.Reader, r.Sender, r.CreatedAt-limitTime.Milliseconds(),
		r.CreatedAt) // with this one
	if err != nil {
		return onboardapi.Asked{}, err
	}
	text := func(jid string) string { return operatorNotice(r, jid) }
	switch {
	case len(operators) == 0:
		o.log.Warn("no operator is notified of a request: none has a direct chat with the bot, or those who "+
			"have blocked it", "chat", r.ChatJID)
	case counts.Made == maxNotices+1:
		text = func(string) string { return floodNotice() }
	case counts.Made > maxNotices:
		operators = nil
	}
	announced := len(operators) > 0 && counts.Made <= maxNotices
	if !announced || !slices.Contains(operators, r.ChatJID) { // an operator who asks has the request itself
		if err := o.notify(tx, r.ChatJID, r.ThreadID, chatNotice(r, announced)); err != nil {
			return onboardapi.Asked{}, err
		}
	}
	for _, jid := range operators {
		if err := o.notify(tx, jid, "", text(jid)); err != nil {
			return onboardapi.Asked{}, err
		}
	}
	return onboardapi.Asked{Code: code, Created: true, State: r.State}, nil
}

// maxCodes is how many codes are tried: a row has each of them already.
const maxCodes = 10

func (o *Onboarding) freeCode(ctx context.Context, tx *store.Tx) (string, error) {
	for range maxCodes {
		code := o.newCode()
		taken, err := rows.Request(ctx, tx.Reader, code)
		if err != nil || taken == nil {
			return code, err
		}
	}
	return "", errors.New("no free code found")
}

// notify stores a notice to a chat.
func (o *Onboarding) notify(tx *store.Tx, jid, threadID, text string) error {
	_, err := tx.PutNotice(jid, threadID, text, o.now())
	if err != nil {
		return fmt.Errorf("notice to %s: %w", jid, err)
	}
	return nil
}
