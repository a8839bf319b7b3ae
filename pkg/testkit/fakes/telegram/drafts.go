package telegram

import (
	"maps"
	"slices"
	"time"
)

// draftExpires is how long a draft of the bot is shown, as documented.
const draftExpires = 30 * time.Second

// BotDraft is the text of a message that the bot is writing, as the user of a private chat sees it. An empty one is
// shown as "Thinking…".
type BotDraft struct {
	ID       int64
	Thread   int
	Text     string
	Entities []Entity
	At       time.Time
}

// sendMessageDraft shows a draft, or changes the one with the same id. It makes no message.
func (s *Server) sendMessageDraft(p params) (any, error) {
	r, err := s.writable(p)
	if err != nil {
		return nil, err
	}
	text := p.str("text")
	entities, err := p.entitiesOf("entities")
	thread := int(p.int("message_thread_id", 0))
	switch {
	case err != nil:
		return nil, err
	case r.chat.Type != Private:
		return nil, badRequest("TEXTDRAFT_PEER_INVALID")
	case p.int("draft_id", 0) == 0:
		return nil, badRequest("invalid draft identifier specified")
	case thread != 0 && r.topics[thread] == nil:
		return nil, badRequest("message thread not found")
	case text != "":
		if err := checkText(text, entities); err != nil {
			return nil, err
		}
	}
	id := p.int("draft_id", 0)
	r.drafts[id] = BotDraft{ID: id, Thread: thread, Text: text, Entities: mark(text, entities), At: time.Now()}
	return true, nil
}

// Drafts are those that the bot shows in a private chat now, by their ids.
func (p Place) Drafts() (all []BotDraft) {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	r := p.s.rooms[p.ChatID]
	if r == nil {
		return nil
	}
	for _, id := range slices.Sorted(maps.Keys(r.drafts)) {
		if d := r.drafts[id]; time.Since(d.At) < draftExpires && (p.ThreadID == 0 || d.Thread == p.ThreadID) {
			all = append(all, d)
		}
	}
	return all
}

// endDrafts removes what the bot was writing in a thread: it has sent a message there.
func (r *room) endDrafts(thread int) {
	maps.DeleteFunc(r.drafts, func(_ int64, d BotDraft) bool { return d.Thread == thread })
}
