// SPDX-License-Identifier: Apache-2.0

package tenant_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/satchel-dev/satchel/internal/apply/tenant"
	"github.com/satchel-dev/satchel/internal/apply/tenant/connection"
	"github.com/satchel-dev/satchel/internal/apply/tenant/discovery"
)

// calls are all requests that an address can be part of.
func calls(t *testing.T, client *tenant.Client, ref tenant.Ref) map[string]func() error {
	ctx := t.Context()
	return map[string]func() error{
		"metadata":      func() error { _, err := client.Metadata(ctx, ref); return err },
		"list metadata": func() error { _, err := client.ListMetadata(ctx, ref, metav1.ListOptions{}); return err },
		"get":           func() error { _, err := client.Get(ctx, ref); return err },
		"list":          func() error { _, err := client.List(ctx, ref, "", 1); return err },
		"apply": func() error {
			_, err := client.Apply(ctx, ref, &unstructured.Unstructured{}, tenant.ApplyOptions{Manager: "m"})
			return err
		},
		"merge":  func() error { _, err := client.Merge(ctx, ref, map[string]any{}, "m"); return err },
		"delete": func() error { _, err := client.Delete(ctx, ref, "uid", "1"); return err },
	}
}

// No part of an address, from a bundle or from a stored inventory, can redirect a request:
// nothing is sent.
func TestT7AddressesStayInTheirPlace(t *testing.T) {
	change := func(do func(*tenant.Ref)) tenant.Ref { ref := one; do(&ref); return ref }
	for name, tc := range map[string]struct {
		reason string
		ref    tenant.Ref
		part   string
	}{
		"name up":           {"the collection's parent", change(func(r *tenant.Ref) { r.Name = ".." }), "name"},
		"name dot":          {"the collection itself, all of it deleted", change(func(r *tenant.Ref) { r.Name = "." }), "name"},
		"subresource":       {"a proxy into a pod", change(func(r *tenant.Ref) { r.Name = "evil/proxy/x" }), "name"},
		"other kind":        {"a secret instead", change(func(r *tenant.Ref) { r.Name = "../secrets/x" }), "name"},
		"escaped":           {"decoded by a proxy", change(func(r *tenant.Ref) { r.Name = "a%2fb" }), "name"},
		"line":              {"another header", change(func(r *tenant.Ref) { r.Name = "a\r\nb" }), "name"},
		"namespace":         {"another namespace", change(func(r *tenant.Ref) { r.Namespace = "../kube-system" }), "namespace"},
		"namespace up":      {"all namespaces", change(func(r *tenant.Ref) { r.Namespace = ".." }), "namespace"},
		"group":             {"another group", change(func(r *tenant.Ref) { r.Resource.Group = "../api/v1" }), "group"},
		"version":           {"another version", change(func(r *tenant.Ref) { r.Resource.Version = ".." }), "version"},
		"no version":        {"the next part would be it", change(func(r *tenant.Ref) { r.Resource.Version = "" }), "version"},
		"resource":          {"a plural that a CRD chose", change(func(r *tenant.Ref) { r.Resource.Resource = "pods/x/exec" }), "resource"},
		"no resource":       {"none chosen", change(func(r *tenant.Ref) { r.Resource.Resource = "" }), "resource"},
		"resource and more": {"up again", change(func(r *tenant.Ref) { r.Resource.Resource = ".." }), "resource"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t)
			client := clientOf(t, newPool(t, s, tenant.Options{}), "installer").For("app")
			for call, send := range calls(t, client, tc.ref) {
				var refused *tenant.RefError
				if err := send(); !errors.As(err, &refused) || refused.Part != tc.part {
					t.Errorf("%s: %s: got %v", tc.reason, call, err)
				}
			}
			if sent := s.seen(""); len(sent) > 0 || client.Requests() > 0 {
				t.Errorf("%s: sent %q", tc.reason, sent)
			}
		})
	}
}

// Without a name a request for one object would be one for all of them.
func TestT7NoNameIsNoObject(t *testing.T) {
	s := newServer(t)
	ref := one
	ref.Name = ""
	for call, send := range calls(t, clientOf(t, newPool(t, s, tenant.Options{}), "installer"), ref) {
		var refused *tenant.RefError
		if err := send(); !strings.HasPrefix(call, "list") && !errors.As(err, &refused) {
			t.Errorf("%s: got %v", call, err)
		}
	}
	for _, request := range s.seen("") {
		if !strings.HasPrefix(request, "GET ") {
			t.Errorf("sent %s", request)
		}
	}
}

// An answer of any request, including discovery, is read up to the limit only; the
// decompressed size counts.
func TestS5AnswersAreBounded(t *testing.T) {
	s := newServer(t)
	s.padding = 1 << 20
	client := clientOf(t, newPool(t, s, tenant.Options{AnswerBytes: 1 << 16}), "installer").For("app")
	all := calls(t, client, one)
	all["rules"] = func() error { _, err := client.Rules(t.Context(), "shop"); return err }
	all["discovery"] = func() error { _, err := client.Kinds().Find(t.Context(), configMap); return err }
	for call, send := range all {
		var large *connection.AnswerTooLargeError
		if err := send(); !errors.As(err, &large) || large.Limit != 1<<16 {
			t.Errorf("%s: got %v", call, err)
		}
	}
	larger := clientOf(t, newPool(t, s, tenant.Options{}), "installer").For("app")
	if _, err := larger.Get(t.Context(), one); err != nil {
		t.Errorf("an answer within the limit: %v", err)
	}
}

// An answer of exactly the limit is read.
func TestS5AnswerAtTheLimit(t *testing.T) {
	s := newServer(t)
	size := int64(len(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"one"}}` + "\n"))
	for limit, good := range map[int64]bool{size: true, size - 1: false} {
		client := clientOf(t, newPool(t, s, tenant.Options{AnswerBytes: limit}), "installer").For("app")
		if _, err := client.Get(t.Context(), one); good != (err == nil) {
			t.Errorf("limit %d of %d: got %v", limit, size, err)
		}
	}
}

// An answer about one object has a lower limit than a list.
func TestS5ObjectsHaveALimitOfTheirOwn(t *testing.T) {
	s := newServer(t)
	s.padding = 1 << 20
	client := clientOf(t, newPool(t, s, tenant.Options{ObjectBytes: 1 << 16}), "installer").For("app")
	var large *connection.AnswerTooLargeError
	if _, err := client.Get(t.Context(), one); !errors.As(err, &large) || large.Limit != 1<<16 {
		t.Errorf("get: got %v", err)
	}
	collection := one
	collection.Name = ""
	if _, err := client.List(t.Context(), collection, "", 1); errors.As(err, &large) {
		t.Errorf("list: got %v", err)
	}
}

// Answers about rules are read up to a limit: users who may write roles decide how
// many there are, and they are read for many namespaces.
func TestRulesAreBounded(t *testing.T) {
	s := newServer(t)
	client := clientOf(t, newPool(t, s, tenant.Options{}), "installer").For("app")
	for padding, read := range map[int]bool{1 << 20: true, 2 << 20: false} {
		s.padding = padding
		_, err := client.Rules(t.Context(), "shop")
		var large *connection.AnswerTooLargeError
		if read && err != nil || !read && (!errors.As(err, &large) || large.Limit != 2<<20) {
			t.Errorf("%d bytes: got %v", padding, err)
		}
	}
}

// A long warning is cut between characters, not inside of one.
func TestWarningsStayText(t *testing.T) {
	s := newServer(t)
	s.warning = "x" + strings.Repeat("é", 400)
	warnings := &tenant.Warnings{}
	ctx := tenant.WithWarnings(t.Context(), warnings)
	if _, err := clientOf(t, newPool(t, s, tenant.Options{}), "installer").Get(ctx, one); err != nil {
		t.Fatal(err)
	}
	if got := warnings.List(); len(got) != 1 || !utf8.ValidString(got[0]) || len(got[0]) < 400 {
		t.Errorf("got %q", got)
	}
}

// A request for a known kind does not wait for the discovery of an unknown one.
func TestS7KnownKindsDoNotWait(t *testing.T) {
	s := newServer(t)
	now := time.Unix(0, 0)
	kinds := newPool(t, s, tenant.Options{Now: func() time.Time { return now }}).Kinds()
	if _, err := kinds.Find(t.Context(), configMap); err != nil {
		t.Fatal(err)
	}
	now = now.Add(time.Hour) // what is known is due for everybody
	held, release := make(chan struct{}), make(chan struct{})
	s.mu.Lock()
	s.hold = func(r *http.Request) {
		if r.URL.Path == "/api" {
			close(held)
			<-release
		}
	}
	s.mu.Unlock()
	asker := make(chan error, 1)
	go func() {
		_, err := kinds.Find(t.Context(), configMap.GroupVersion().WithKind("Novelty"))
		asker <- err
	}()
	<-held
	reader := make(chan error, 1)
	go func() {
		_, err := kinds.Find(t.Context(), configMap)
		reader <- err
	}()
	select {
	case err := <-reader:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(10 * time.Second):
		t.Error("the reader waits for the asker")
	}
	close(release)
	if err := <-asker; !discovery.IsNoKind(err) {
		t.Errorf("got %v", err)
	}
}
