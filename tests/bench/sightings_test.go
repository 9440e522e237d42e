// SPDX-License-Identifier: Apache-2.0

//go:build linux

package bench

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

// kind is a kind of the objects that are changed: where the value is that an edit
// changes.
type kind struct {
	version, name, resource string
	value                   []string
	edit                    string
}

var (
	configMaps = &kind{"v1", "ConfigMap", "configmaps", []string{"data", "c"}, `{"data":{"c":"theirs"}}`}
	workloads  = &kind{"apps/v1", "Deployment", "deployments", []string{"spec", "revisionHistoryLimit"}, `{"spec":{"revisionHistoryLimit":7}}`}
)

// sighting is what the watch of the test showed of an object.
type sighting struct {
	at      time.Time
	uid     types.UID
	version uint64
	// intact: it exists, with our label, value and fields as they were at first.
	intact bool
	// written is when something of ours was changed last, in seconds.
	written time.Time
	// replicas and note are what others set.
	replicas int64
	note     string
}

// sightings are all that a watch showed, by object, in order.
type sightings struct {
	mu    sync.Mutex
	first map[string]string
	list  map[string][]sighting
}

// watchAll watches the objects of a namespace until the test ends.
func watchAll(t *testing.T, config *rest.Config, namespace string) *sightings {
	t.Helper()
	c, err := client.NewWithWatch(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	seen := &sightings{first: map[string]string{}, list: map[string][]sighting{}}
	for _, k := range []*kind{configMaps, workloads} {
		list := &unstructured.UnstructuredList{}
		list.SetAPIVersion(k.version)
		list.SetKind(k.name + "List")
		if err := c.List(t.Context(), list, client.InNamespace(namespace)); err != nil {
			t.Fatal(err)
		}
		for i := range list.Items {
			seen.show(k, &list.Items[i], false)
		}
		watching, err := c.Watch(t.Context(), list, client.InNamespace(namespace), &client.ListOptions{
			Raw: &metav1.ListOptions{ResourceVersion: list.GetResourceVersion(), TimeoutSeconds: new(int64(3600))},
		})
		if err != nil {
			t.Fatal(err)
		}
		go seen.follow(k, watching)
	}
	return seen
}

func (s *sightings) follow(k *kind, watching watch.Interface) {
	for event := range watching.ResultChan() {
		if object, ok := event.Object.(*unstructured.Unstructured); ok && object.GetKind() == k.name {
			s.show(k, object, event.Type == watch.Deleted)
		}
	}
}

func (s *sightings) show(k *kind, o *unstructured.Unstructured, gone bool) {
	key := target{k, o.GetName()}.String()
	version, _ := strconv.ParseUint(o.GetResourceVersion(), 10, 64)
	seen := sighting{at: time.Now(), uid: o.GetUID(), version: version, note: o.GetAnnotations()[noted]}
	seen.replicas, _, _ = unstructured.NestedInt64(o.Object, "spec", "replicas")
	value, _, _ := unstructured.NestedFieldNoCopy(o.Object, k.value...)
	state := fmt.Sprint(value, o.GetLabels()[v1alpha1.DeploymentLabel])
	for _, e := range o.GetManagedFields() {
		if strings.HasPrefix(e.Manager, "satchel/") && e.FieldsV1 != nil {
			state += string(e.FieldsV1.GetRawBytes())
			if e.Time != nil { // a strip took it
				seen.written = e.Time.Time
			}
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, known := s.first[key]; !known {
		s.first[key] = state
	}
	seen.intact = !gone && o.GetDeletionTimestamp() == nil && state == s.first[key]
	s.list[key] = append(s.list[key], seen)
}

// last is how an object was seen last.
func (s *sightings) last(o target) sighting {
	s.mu.Lock()
	defer s.mu.Unlock()
	if list := s.list[o.String()]; len(list) > 0 {
		return list[len(list)-1]
	}
	return sighting{}
}

// restored tells when an object was first seen to be as before a change.
func (s *sightings) restored(c *change) (time.Time, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	changed, _ := strconv.ParseUint(c.version, 10, 64)
	for _, seen := range s.list[c.String()] {
		after := seen.version > changed
		if c.version == "" {
			after = seen.uid != c.uid
		}
		if after && seen.intact {
			return seen.at, true
		}
	}
	return time.Time{}, false
}

// writtenSince lists the objects of which something of ours was changed after a time.
func (s *sightings) writtenSince(at time.Time) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []string
	for key, all := range s.list {
		for _, seen := range all {
			if seen.written.After(at) {
				list = append(list, key)
				break
			}
		}
	}
	return list
}
