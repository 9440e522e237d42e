// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/cli/printer"
	"github.com/satchel-dev/satchel/internal/cli/see"
)

// anEvent is about an object of the namespace demo.
func anEvent(kind, name, reason, message string, first, last time.Duration, count int32) *corev1.Event {
	apiVersion, kind, _ := strings.Cut(kind, "/")
	e := &corev1.Event{Type: corev1.EventTypeNormal, Reason: reason, Message: message, Count: count,
		FirstTimestamp: ago(first), LastTimestamp: ago(last), ReportingController: "kubelet",
		InvolvedObject: corev1.ObjectReference{APIVersion: strings.ReplaceAll(apiVersion, "_", "/"), Kind: kind, Namespace: "demo", Name: name}}
	if strings.HasPrefix(reason, "Failed") {
		e.Type = corev1.EventTypeWarning
	}
	return e
}

func TestEventsOutput(t *testing.T) {
	series := anEvent("v1/Pod", "web-1", "FailedPull", "no image", 0, 0, 0)
	series.FirstTimestamp, series.LastTimestamp = metav1.Time{}, metav1.Time{}
	series.EventTime = metav1.NewMicroTime(noon.Add(-time.Hour))
	series.Series = &corev1.EventSeries{Count: 7, LastObservedTime: metav1.NewMicroTime(noon.Add(-time.Second))}
	timeless := anEvent("v1/Pod", "web-2", "Odd", "no time", 0, 0, 0)
	timeless.FirstTimestamp, timeless.LastTimestamp, timeless.CreationTimestamp = metav1.Time{}, metav1.Time{}, ago(10*time.Minute)
	events := []see.Event{
		see.NewEvent(series),
		see.NewEvent(anEvent("v1/Pod", "web-1", "Started", "started", time.Hour, time.Hour, 1)),
		see.NewEvent(anEvent("apps_v1/Deployment", "web", "Scaled", "scaled up\nto 1", 2*time.Hour, 2*time.Hour, 1)),
		see.NewEvent(anEvent("v1/Pod", "web-1", "Started", "started", 30*time.Minute, 20*time.Minute, 2)),
		see.NewEvent(timeless),
		see.NewEvent(anEvent("v1/Pod", "a"+steering, "Failed"+steering, steering+"\n"+steering, time.Minute, time.Minute, 1)),
	}
	list := see.EventList{Events: see.Merged(events)}
	for name, wide := range map[string]bool{"table": false, "wide": true} {
		text := list.Table(wide, noon).Render(printer.Style{})
		golden(t, "events/"+name, text)
		if odd := hiddenIn(text); odd != "" {
			t.Errorf("%s: %s", name, odd)
		}
	}
	var lines strings.Builder
	for _, e := range list.Events {
		fmt.Fprintln(&lines, e.Line(printer.Style{}))
	}
	golden(t, "events/watch", lines.String())
	if odd := hiddenIn(lines.String()); odd != "" {
		t.Error(odd)
	}
}

// event records an event about an object.
func (c testCluster) event(about corev1.ObjectReference, kind, reason, message string) {
	c.T.Helper()
	about.Namespace = c.Namespace
	now := metav1.Now()
	e := &corev1.Event{ObjectMeta: metav1.ObjectMeta{GenerateName: "e-", Namespace: c.Namespace}, InvolvedObject: about,
		Type: kind, Reason: reason, Message: message, FirstTimestamp: now, LastTimestamp: now, Count: 1}
	if err := c.AnyClient().Create(c.T.Context(), e); err != nil {
		c.T.Fatal(err)
	}
}

func TestEventsOfCluster(t *testing.T) {
	c := newTestCluster(t)
	c.Create(aDeployment(called("app"), lists(t, c.object("app", web("web", "")))))
	c.Want(c.Satchel("events", "app", "--warnings"), kit.ExitOK, "No events: nothing happened lately")
	c.object("", web("foreign", ""))
	deployment := corev1.ObjectReference{APIVersion: "satchel.dev/v1alpha1", Kind: "BundleDeployment", Name: "app"}
	c.event(deployment, "Normal", "Installed", "applied revision 1")
	c.event(deployment, "Normal", "Installed", "applied revision 1")
	c.event(corev1.ObjectReference{APIVersion: "satchel.dev/v1alpha1", Kind: "BundleSource", Name: "app"}, "Warning", "Unreachable", "unknown host\x1b[2J")
	c.event(corev1.ObjectReference{APIVersion: "satchel.dev/v1alpha1", Kind: "BundleSource", Name: "another"}, "Warning", "Unreachable", "of no concern")

	got := c.Eventually("Created pod: web-", "events", "app")
	c.Want(got, kit.ExitOK, "BundleDeployment "+c.Namespace+"/app", "applied revision 1 (2 times)", "BundleSource "+c.Namespace+"/app", "ScalingReplicaSet", `unknown host\u001b[2J`)
	got = c.Eventually("Successfully assigned", "events", "app", "-o", "wide")
	c.Want(got, kit.ExitOK, "FIRST SEEN", "Pod "+c.Namespace+"/web-")
	if strings.Contains(got.Out, "foreign") || strings.Contains(got.Out, "of no concern") || hiddenIn(got.Out) != "" {
		t.Errorf("what does not concern it is shown: %s", got)
	}
	pod := strings.Fields(got.Out[strings.Index(got.Out, "Pod "+c.Namespace+"/web-"):])[1]
	c.Want(c.Satchel("events", "app", "--limit", "1"), kit.ExitOK, "older are not shown; --limit 0 shows all.")
	c.Want(c.Satchel("events", "app", "--limit", "-1"), kit.ExitError, "--limit is a number of events")
	var list see.EventList
	if got := c.Satchel("events", "app", "-o", "json", "--warnings"); json.Unmarshal([]byte(got.Out), &list) != nil || len(list.Events) != 1 || list.Events[0].Reason != "Unreachable" {
		t.Errorf("got %s", got)
	}
	all := c.Satchel("events")
	c.Want(all, kit.ExitOK, "BundleSource "+c.Namespace+"/another", "of no concern", "BundleDeployment "+c.Namespace+"/app")
	if strings.Contains(all.Out, "Pod ") {
		t.Errorf("events of other kinds are shown: %s", all)
	}
	c.Want(c.Satchel("events", "-A", "--warnings"), kit.ExitOK, "BundleSource "+c.Namespace+"/another")
	c.Want(c.Satchel("events", "app", "-A"), kit.ExitError, "a name means one object of one namespace")
	followed := c.Follow("events", "-w")
	followed.Until("of no concern")
	c.event(corev1.ObjectReference{APIVersion: "satchel.dev/v1alpha1", Kind: "BundleDeployment", Name: "later"}, "Normal", "Installed", "another one")
	followed.Until("BundleDeployment " + c.Namespace + "/later  another one\n")
	followed.Interrupt()
	c.eventsFollowed(deployment, strings.TrimPrefix(pod, c.Namespace+"/"))
	c.Want(c.Satchel("events", "app", "--as", "unprivileged"), kit.ExitError, "you may not get bundledeployments")
}

// eventsFollowed records events while events -w runs.
func (c testCluster) eventsFollowed(deployment corev1.ObjectReference, pod string) {
	c.T.Helper()
	f := c.Follow("events", "app", "-w")
	f.Until("applied revision 1 (2 times)")
	c.event(corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Name: "foreign-1"}, "Normal", "Foreign", "not shown")
	c.event(corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Name: pod}, "Warning", "BackOff", "crashes")
	f.Until("Warning  BackOff  Pod " + c.Namespace + "/" + pod + "  crashes\n")
	gone := pod[:strings.LastIndexByte(pod, '-')] + "-zzzzz"
	c.event(corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Name: gone}, "Normal", "Killing", "of a Pod that is gone")
	f.Until("Pod " + c.Namespace + "/" + gone + "  of a Pod that is gone\n")
	// The inventory grows, and its new objects are followed.
	added := c.object("app", "{apiVersion: v1, kind: ConfigMap, metadata: {name: added}}")
	d := aDeployment()
	key := metav1.ObjectMeta{Namespace: c.Namespace, Name: "app"}
	d.ObjectMeta = key
	if err := c.Client.Get(c.T.Context(), objectKey(key), d); err != nil {
		c.T.Fatal(err)
	}
	lists(c.T, added)(d)
	if err := c.Client.Status().Update(c.T.Context(), d); err != nil {
		c.T.Fatal(err)
	}
	c.event(deployment, "Normal", "Upgraded", "revision 2")
	f.Until("revision 2\n")
	c.event(corev1.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Name: "added"}, "Normal", "Seen", "a new object")
	f.Until("ConfigMap " + c.Namespace + "/added  a new object\n")
	f.Interrupt()
	if text := f.Out.String(); strings.Contains(text, "not shown") || strings.Count(text, "crashes") != 1 {
		c.T.Errorf("got %s", text)
	}
}
