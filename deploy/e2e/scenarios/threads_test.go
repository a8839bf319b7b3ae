package scenarios

import (
	"testing"

	"arizuko/pkg/msg"
)

// Locations of the scenarios.
var (
	channel = inChat("slack:C1")
	thread  = inThread("slack:C1", "1.1")
	general = inChat("telegram:-5")
	forum7  = inThread("telegram:-5", "7")
	forum8  = inThread("telegram:-5", "8")
	webChat = inChat("web:main")
)

// opened is a thread of a Slack channel with its own session.
var opened = wantTurn{"main", "1.1", "1.1", "1.1", "slack-channel-thread 4000"}

// deploying is the same thread with the session of the topic #deploy.
var deploying = wantTurn{"main", "#deploy", "1.1", "1.1", "slack-channel-thread 4000"}

func TestSlack_Mention_OpensThread(t *testing.T) {
	child := wantTurn{"main/eng", "1.1", "1.1", "1.1", "slack-channel-thread 4000"}
	second := wantTurn{"main", "2.2", "2.2", "2.2", "slack-channel-thread 4000"}
	runScenarios(t, []scenario{
		{title: "a mention in a channel opens a thread, where the conversation continues", steps: []step{
			says(0, channel, "good morning").observed(),
			mentions(1, channel, "1.1", "what broke?").starts(opened, msg.ReasonRoute),
			says(20, thread, "tell me more").starts(opened, msg.ReasonEngaged),
			says(39, thread, "and why?").starts(opened, msg.ReasonEngaged),
			wantThread(thread, "what broke?", "tell me more", "and why?"),
		}},
		{title: "the channel and other threads are not engaged", steps: []step{
			mentions(0, channel, "1.1", "what broke?").starts(opened, msg.ReasonRoute),
			says(1, channel, "lunch?").observed(),
			says(2, inThread("slack:C1", "2.2"), "pizza").observed(),
			says(3, inThread("slack:C2", "1.1"), "a thread of the same name").observed(),
			says(4, thread, "tell me more").starts(opened, msg.ReasonEngaged),
		}},
		{title: "#name in a mention binds the thread to that topic", steps: []step{
			mentions(0, channel, "1.1", "#deploy ship it").starts(deploying, msg.ReasonPrefixTopic),
			says(1, thread, "how far?").starts(deploying, msg.ReasonEngaged),
			says(22, thread, "among us").observed(),
			mentions(23, thread, "1.4", "and now?").starts(deploying, msg.ReasonRoute),
			wantThread(thread, "ship it", "how far?", "among us", "and now?"),
			mentions(24, channel, "2.2", "what is for lunch?").starts(second, msg.ReasonRoute),
		}},
		{title: "the same for a message of the same batch in the thread", steps: []step{
			inOneBatch(
				mentions(0, channel, "1.1", "#deploy ship it").starts(deploying, msg.ReasonPrefixTopic),
				says(0, thread, "and hurry").starts(deploying, msg.ReasonEngaged),
			),
		}},
		{title: "a question with /new opens a thread, too", steps: []step{
			mentions(0, channel, "1.1", "/new what broke?").starts(opened, msg.ReasonCommand),
			says(1, thread, "tell me more").starts(opened, msg.ReasonEngaged),
			says(2, channel, "lunch?").observed(),
			wantThread(thread, "what broke?", "tell me more"),
		}},
		{title: "@name in a mention lets the child answer in the thread", steps: []step{
			mentions(0, channel, "1.1", "@eng what broke?").starts(child, msg.ReasonPrefixGroup),
			says(1, thread, "why?").starts(child, msg.ReasonEngaged),
			says(2, channel, "lunch?").observed(),
		}},
		{title: "#name inside a thread runs there once and binds nothing", steps: []step{
			mentions(0, channel, "1.1", "what broke?").starts(opened, msg.ReasonRoute),
			says(1, thread, "#deploy ship it").starts(deploying, msg.ReasonPrefixTopic),
			says(2, thread, "thanks").starts(opened, msg.ReasonEngaged),
			wantThread(thread, "what broke?", "#deploy ship it", "ship it", "thanks"),
		}},
		{title: "in a channel with a sticky topic each mention opens a thread; they do not merge", steps: []step{
			says(0, channel, "#deploy").decided(msg.ReasonStickyTopic),
			inOneBatch(
				mentions(1, channel, "1.1", "the front end").starts(deploying, msg.ReasonRoute),
				mentions(1, channel, "2.2", "the back end").starts(wantTurn{"main", "#deploy", "2.2", "2.2", "slack-channel-thread 4000"}, msg.ReasonRoute),
			),
			says(2, channel, "#").decided(msg.ReasonStickyReset),
			says(3, thread, "how far?").starts(deploying, msg.ReasonEngaged),
		}},
	})
}

func TestTopics_AndThreads_ArePlaces(t *testing.T) {
	topic7 := wantTurn{"main", "7", "7", "7", "telegram-topic 4000"}
	inGeneral := wantTurn{"main", "", "", "", "telegram-group 1500"}
	sticky := func(thread string) wantTurn {
		return wantTurn{"main", "#deploy", thread, thread, "telegram-topic 4000"}
	}
	runScenarios(t, []scenario{
		{title: "each forum topic and General are separate places", steps: []step{
			mentions(0, forum7, "t1", "what broke?").starts(topic7, msg.ReasonRoute),
			says(1, forum7, "tell me more").starts(topic7, msg.ReasonEngaged),
			says(2, general, "lunch?").observed(),
			says(3, forum8, "pizza").observed(),
			mentions(4, general, "t2", "what is for lunch?").starts(inGeneral, msg.ReasonRoute),
			says(5, general, "again?").starts(inGeneral, msg.ReasonEngaged),
			says(6, forum8, "pizza").observed(),
		}},
		{title: "a sticky topic decides the session, the forum topic the place of the answer", steps: []step{
			says(0, forum7, "#deploy").decided(msg.ReasonStickyTopic),
			mentions(1, forum7, "t1", "ship it").starts(sticky("7"), msg.ReasonRoute),
			says(2, forum7, "how far?").starts(sticky("7"), msg.ReasonEngaged),
			says(3, forum7, "#fix this too").starts(sticky("7"), msg.ReasonPrefixTopic),
			says(4, general, "lunch?").observed(),
			mentions(5, general, "t2", "and here?").starts(wantTurn{"main", "#deploy", "", "", "telegram-group 1500"}, msg.ReasonRoute),
			says(6, forum7, "#").decided(msg.ReasonStickyReset),
			says(7, forum7, "and now?").starts(topic7, msg.ReasonEngaged),
		}},
		{title: "two forum topics under one sticky topic do not merge", steps: []step{
			says(0, general, "#deploy").decided(msg.ReasonStickyTopic),
			inOneBatch(
				mentions(1, forum7, "t1", "the front end").starts(sticky("7"), msg.ReasonRoute),
				mentions(1, forum8, "t2", "the back end").starts(sticky("8"), msg.ReasonRoute),
				says(1, forum7, "of the shop").starts(sticky("7"), msg.ReasonEngaged),
			),
			says(2, forum8, "how far?").starts(sticky("8"), msg.ReasonEngaged),
		}},
		{title: "a tab of the web chat is a topic, and the answer appears in it", steps: []step{
			says(0, webChat, "hello").starts(wantTurn{"main", "", "", "", "web 4000"}, msg.ReasonAddress),
			says(1, inTab("web:main", "#a"), "hello").starts(wantTurn{"main", "#a", "", "#a", "web 4000"}, msg.ReasonAddress),
			says(2, inTab("web:main", "#a"), "#b over there").starts(wantTurn{"main", "#b", "", "#b", "web 4000"}, msg.ReasonPrefixTopic),
		}},
	})
}
