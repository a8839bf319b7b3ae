package main

import (
	"cmp"
	"database/sql"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"arizuko/deploy/e2e/chatsim"
	"arizuko/pkg/msg"
)

// writing is the times at which users wrote their messages. It is safe for concurrent use.
type writing struct {
	mu sync.Mutex
	at map[key]time.Time // by chat and prompt
}

// note notes that messages were written now.
func (w *writing) note(all []sentMessage) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, m := range all {
		w.at[key{m.chat, m.prompt}] = time.Now()
	}
}

func (w *writing) when(k key) (at time.Time, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	at, ok = w.at[k]
	return at, ok
}

// answer is a message that was answered.
type answer struct {
	platform          string
	written, answered time.Time
}

// answersOf returns the answers that arrived on a platform, in order.
func (w *writing) answersOf(p chatsim.Platform) (all []answer) {
	for _, a := range p.Arrivals() {
		for _, m := range echoLine.FindAllStringSubmatch(a.Text, -1) {
			if written, ok := w.when(key{a.Chat, m[1]}); ok {
				all = append(all, answer{p.Info().Platform, written, a.At})
			}
		}
	}
	return all
}

// webAnswers returns the answers in web chats, when they were stored.
func (w *writing) webAnswers(db *sql.DB) (all []answer, err error) {
	err = each(db, `SELECT chat_jid, content, received_at FROM messages WHERE direction = 'out' AND chat_jid LIKE 'web:%' ORDER BY id`,
		func(scan func(...any) error) error {
			var chat, content string
			var at int64
			if err := scan(&chat, &content, &at); err != nil {
				return err
			}
			for _, m := range echoLine.FindAllStringSubmatch(content, -1) {
				if written, ok := w.when(key{chat, m[1]}); ok {
					all = append(all, answer{msg.PlatformWeb, written, time.UnixMilli(at)})
				}
			}
			return nil
		})
	return all, err
}

// episode is a disruption that was made.
type episode struct {
	name             string
	began, ended     time.Time // of the disruption
	recovered        time.Time // service everywhere, all daemons and servers run
	firsts, silences []time.Duration
}

// measure finds out how long there was no service on each platform: until the first answer to a message that was
// written after the beginning, and the longest time between two answers, which also counts later ones.
func (e *episode) measure(answers []answer) {
	byPlatform := map[string][]answer{}
	for _, a := range answers {
		byPlatform[a.platform] = append(byPlatform[a.platform], a)
	}
	for _, platform := range slices.Sorted(maps.Keys(byPlatform)) {
		first, silence, last := time.Duration(-1), time.Duration(0), e.began
		all := byPlatform[platform]
		slices.SortFunc(all, func(a, b answer) int { return a.answered.Compare(b.answered) })
		for _, a := range all {
			if a.answered.Before(e.began) || last.After(e.recovered) {
				continue
			}
			if first < 0 && !a.written.Before(e.began) {
				first = a.answered.Sub(e.began)
			}
			silence, last = max(silence, a.answered.Sub(last)), a.answered
		}
		if first >= 0 {
			e.firsts, e.silences = append(e.firsts, first), append(e.silences, silence)
		}
	}
}

// String is a line of the result.
func (e *episode) String() string {
	return fmt.Sprintf("%-44s first answer p50 %5.1f s max %5.1f s   longest silence p50 %5.1f s max %5.1f s", e.name,
		median(e.firsts).Seconds(), slices.Max(append(e.firsts, 0)).Seconds(), median(e.silences).Seconds(),
		slices.Max(append(e.silences, 0)).Seconds())
}

func median(all []time.Duration) time.Duration {
	if len(all) == 0 {
		return 0
	}
	all = slices.Sorted(slices.Values(all))
	return all[len(all)/2]
}

// printService prints how long there was no service: for each kind of disruption over the platforms, and over all.
func printService(out io.Writer, episodes []*episode, answers []answer) {
	fmt.Fprintln(out, "time without service, over the platforms and the web chat:")
	total := &episode{name: "all"}
	for _, e := range slices.SortedFunc(slices.Values(episodes),
		func(a, b *episode) int { return cmp.Compare(a.name, b.name) }) {
		e.measure(answers)
		fmt.Fprintln(out, strings.TrimRight(e.String(), " "))
		total.firsts, total.silences = append(total.firsts, e.firsts...), append(total.silences, e.silences...)
	}
	fmt.Fprintln(out, total)
}
