package scenarios

import (
	"math"
	"testing"
	"time"

	"arizuko/pkg/msg"
)

// inGroup is a turn in a Telegram group without topics.
var inGroup = wantTurn{"main", "", "", "", "telegram-group 1500"}

func TestEngagement_Window_OpensSlidesAndEnds(t *testing.T) {
	// group is the chat of these scenarios.
	group := inChat("telegram:-5")
	mention := mentions(0, group, "t1", "what broke?").starts(inGroup, msg.ReasonRoute)
	runScenarios(t, []scenario{
		{title: "each delivered answer extends the window to twenty minutes", steps: []step{
			mention,
			says(19, group, "tell me more").starts(inGroup, msg.ReasonEngaged),
			says(38, group, "why?").starts(inGroup, msg.ReasonEngaged),
			says(59, group, "lunch?").observed(),
		}},
		{title: "a conversation goes on though its answers come after the end of the window", steps: []step{
			mention,
			says(19, group, "wait until released").starts(inGroup, msg.ReasonEngaged).runsOn(),
			says(25, group, "are you still there?").starts(inGroup, msg.ReasonEngaged).runsOn(),
			releaseAgents(30, group),
			says(49, group, "thanks").starts(inGroup, msg.ReasonEngaged),
			says(70, group, "lunch?").observed(),
		}},
		{title: "a mention and the rows of its batch after it are one question", steps: []step{
			inOneBatch(
				says(0, group, "good morning").observed(),
				mention,
				says(0, group, "it was fine yesterday").starts(inGroup, msg.ReasonEngaged),
			),
			says(1, group, "thanks").starts(inGroup, msg.ReasonEngaged),
		}},
		{title: "a queued answer engages; its delivery opens the window", steps: []step{
			mention.answerIs(queued),
			says(30, group, "hello?").starts(inGroup, msg.ReasonEngaged).answerIs(queued),
			deliver(40, group),
			says(59, group, "there you are").starts(inGroup, msg.ReasonEngaged),
			says(80, group, "lunch?").observed(),
		}},
		{title: "an answer delivered at an invalid time affects no other chat", steps: []step{
			mention.answerIs(queued),
			deliverAt(time.UnixMilli(math.MinInt64), group),
			says(1, inChat("discord:6"), "lunch?").observed(),
			mentions(2, group, "t2", "again?").starts(inGroup, msg.ReasonRoute).answerIs(queued),
			deliverAt(time.UnixMilli(math.MaxInt64), group),
			says(3, inChat("discord:6"), "pizza").observed(),
		}},
		{title: "a delegated question engages until the child has answered", steps: []step{
			mentions(0, group, "t1", "silent please").starts(inGroup, msg.ReasonRoute).endsAs(msg.ReasonSilent),
			delegate(group, "t1", "main/eng", "wait until released"),
			says(5, group, "and hurry").starts(inGroup, msg.ReasonEngaged),
			releaseAgents(10, group),
			says(29, group, "thanks").starts(inGroup, msg.ReasonEngaged),
		}},
		{title: "@ ends the windows of all threads of the chat", steps: []step{
			mentions(0, channel, "1.1", "what broke?").starts(opened, msg.ReasonRoute),
			says(1, channel, "@").decided(msg.ReasonStickyReset),
			says(2, thread, "lunch?").observed(),
			mentions(3, thread, "1.3", "are you there?").starts(opened, msg.ReasonRoute),
			says(4, thread, "good").starts(opened, msg.ReasonEngaged),
		}},
		{title: "the API opens and ends a window", steps: []step{
			says(0, group, "good morning").observed(),
			engage(group, "main", 600),
			says(5, group, "what broke?").starts(inGroup, msg.ReasonEngaged),
			says(24, group, "thanks").starts(inGroup, msg.ReasonEngaged),
			engage(group, "", 0),
			says(25, group, "lunch?").observed(),
		}},
		{title: "a turn that is resumed after a kill of gated still engages", steps: []step{
			mentions(0, group, "t1", "wait until released").starts(inGroup, msg.ReasonRoute).runsOn(),
			action(killGated),
			says(1, group, "and hurry").starts(inGroup, msg.ReasonEngaged).runsOn(),
			releaseAgents(2, group),
			says(21, group, "thanks").starts(inGroup, msg.ReasonEngaged),
		}},
	})
}

func TestEngagement_RoutdOutage_DecidedByTimeOfMessage(t *testing.T) {
	group := inChat("telegram:-5")
	var all []scenario
	for _, outage := range outages {
		begin, end := beginOutage(outage.begin), endOutage(outage.end)
		all = append(all, []scenario{
			{title: outage.name + ": a message within the window is answered, however late it is decided", steps: []step{
				mentions(0, group, "t1", "what broke?").starts(inGroup, msg.ReasonRoute),
				begin,
				says(19, group, "tell me more").starts(inGroup, msg.ReasonEngaged).afterOutage(),
				says(41, group, "and why?").starts(inGroup, msg.ReasonEngaged).afterOutage(), // the one before waits for its answer
				action(waitOutageLogged),
				action(ageRows),
				end,
			}},
			{title: outage.name + ": an answer delivered meanwhile opens the window", steps: []step{
				mentions(0, group, "t1", "wait until released").starts(inGroup, msg.ReasonRoute).runsOn(),
				begin,
				releaseAgents(5, group),
				says(24, group, "thanks").starts(inGroup, msg.ReasonEngaged).afterOutage(),
				says(46, group, "and why?").starts(inGroup, msg.ReasonEngaged).afterOutage(), // the one before waits for its answer
				action(waitOutageLogged),
				action(ageRows),
				end,
			}},
			{title: outage.name + ": a mention and its follow-up wait together", steps: []step{
				begin,
				says(0, group, "good morning").observed().afterOutage(),
				mentions(1, group, "t1", "what broke?").starts(inGroup, msg.ReasonRoute).afterOutage(),
				says(2, group, "it was fine yesterday").starts(inGroup, msg.ReasonEngaged).afterOutage(),
				action(waitOutageLogged),
				end,
				says(20, group, "thanks").starts(inGroup, msg.ReasonEngaged),
			}},
		}...)
	}
	runScenarios(t, all)
}
