package main

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"arizuko/deploy/e2e/chatsim"
	"arizuko/pkg/httpx"
	"arizuko/pkg/msg"
)

const (
	// unknownRoom begins the rooms of the foreign platform that are connected by an approval.
	unknownRoom = "new-"
	// maxUnknown is how many of them the random load opens: each gets a group.
	maxUnknown = 40
	// approvalInterval is how often the operator looks for requests.
	approvalInterval = 100 * time.Millisecond
)

// approver is an operator who approves all requests.
type approver struct{ onbod *httpx.Client }

// run approves requests until ctx ends. While daemons are killed, calls fail: the rest of their work is
// repeated, since a request stays pending until it is approved.
func (a *approver) run(ctx context.Context) {
	ticker := time.NewTicker(approvalInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		var pending struct {
			Requests []struct {
				Code string `json:"code"`
			} `json:"requests"`
		}
		_ = a.onbod.Do(ctx, http.MethodGet, "/v1/requests?state=pending", nil, &pending)
		for _, r := range pending.Requests {
			_ = a.onbod.Do(ctx, http.MethodPost, "/approve", map[string]string{"code": r.Code, "by": "web:operator"},
				nil)
		}
	}
}

// newNewcomers makes unknown chats on a platform.
func newNewcomers(p chatsim.Platform) (all []chatsim.Conversation) {
	for i := range maxUnknown {
		all = append(all, p.NewDM(fmt.Sprintf("Newcomer %d", i)))
	}
	return all
}

// unknownRoutes lead newcomers to onbod.
func unknownRoutes(newcomers []chatsim.Conversation) (all []msg.Route) {
	for _, c := range newcomers {
		platform, room := msg.SplitJID(c.Chat)
		all = append(all, msg.Route{Match: "platform=" + platform + " room=" + room, Target: "daemon:onbod"})
	}
	return all
}

// knowsUnknown reports whether there are chats left that are unknown.
func (g *generator) knowsUnknown() bool {
	return g.unknown < maxUnknown && (g.newcomers == nil || g.unknown < len(g.newcomers))
}

// writeFromUnknown writes n messages in a chat that no route leads to a group. All must be answered once it
// is approved.
func (g *generator) writeFromUnknown(ctx context.Context, n int) chatsim.Conversation {
	g.unknown++
	c := chatsim.Conversation{Chat: fmt.Sprintf("matrix:%s%d", unknownRoom, g.unknown)}
	verb := msg.VerbMention
	if g.newcomers != nil {
		c, verb = g.newcomers[g.unknown-1], msg.VerbMessage
	}
	for range n {
		g.sendText(ctx, c, g.plainText(), verb)
	}
	return c
}

// connect has n unknown chats approved, one after another.
func (p *provoker) connect(ctx context.Context, n int) error {
	for range n {
		c := p.load.writeFromUnknown(ctx, 2)
		err := p.await(ctx, "an unknown chat to be answered",
			`SELECT count(CASE WHEN disposition = 'routed' THEN 1 END) = 2 FROM messages WHERE chat_jid = ? AND direction = 'in'`, c.Chat)
		if err != nil {
			return err
		}
	}
	return nil
}
