// SPDX-License-Identifier: Apache-2.0

package health

import (
	"cmp"
	"context"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// explained are the kinds of which only events say why they make no progress: a quota or a
// webhook that refuses their Pods, a volume that cannot be provisioned. A Deployment reports
// that itself.
var explained = map[string]bool{
	"DaemonSet.apps": true, "Job.batch": true, "ReplicaSet.apps": true, "StatefulSet.apps": true,
	"ReplicationController": true, "PersistentVolumeClaim": true,
}

// longestEvent limits how much of an event a message contains.
const longestEvent = 400

// happened is the message of the newest event about an object, warnings before others, in
// words that stay the same between retries; empty when there is none or the account may
// not list events.
func (c checking) happened(ctx context.Context, object *unstructured.Unstructured) string {
	events, err := c.client.Events(ctx, object.GetNamespace(), string(object.GetUID()), podLimit)
	if err != nil || len(events) == 0 {
		return "" // the object's own message stands
	}
	newest := slices.MaxFunc(events, func(a, b unstructured.Unstructured) int {
		return cmp.Or(cmp.Compare(warns(a), warns(b)), strings.Compare(when(a), when(b)))
	})
	text, _, _ := unstructured.NestedString(newest.Object, "message")
	text = strings.TrimSuffix(strings.Join(strings.Fields(text), " "), ".")
	if len(text) > longestEvent {
		text = strings.ToValidUTF8(text[:longestEvent], "") + "..."
	}
	return steady(object.GetName(), text)
}

func warns(event unstructured.Unstructured) int {
	if event.Object["type"] == "Warning" {
		return 1
	}
	return 0
}

// when is the time of the last occurrence of an event, as a string that sorts.
func when(event unstructured.Unstructured) string {
	last, _, _ := unstructured.NestedString(event.Object, "lastTimestamp")
	first, _, _ := unstructured.NestedString(event.Object, "eventTime")
	series, _, _ := unstructured.NestedString(event.Object, "series", "lastObservedTime")
	return max(last, first, series)
}

// steady removes the random suffixes of the Pod names: each attempt has others.
func steady(name, text string) string {
	return regexp.MustCompile(`\b`+regexp.QuoteMeta(name)+`-[a-z0-9]{5}\b`).ReplaceAllString(text, name+"-...")
}
