// SPDX-License-Identifier: Apache-2.0

package certificate

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func object(apiVersion, kind, name, from string, content map[string]any) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: content}
	o.SetAPIVersion(apiVersion)
	o.SetKind(kind)
	o.SetName(name)
	if from != "" {
		o.SetAnnotations(map[string]string{InjectAnnotation: from})
	}
	return o
}

func client(service string) map[string]any {
	return map[string]any{"service": map[string]any{"namespace": "shop", "name": service}}
}

// webhooks has one webhook a Service.
func webhooks(services ...string) *unstructured.Unstructured {
	var hooks []any
	for _, service := range services {
		hooks = append(hooks, map[string]any{"name": service + ".example.org", "clientConfig": client(service)})
	}
	return object("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "hooks", "shop/hook-cert", map[string]any{"webhooks": hooks})
}

func definition(service string) *unstructured.Unstructured {
	return object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "shapes.example.org", "shop/"+service+"-cert",
		map[string]any{"spec": map[string]any{"conversion": map[string]any{"strategy": "Webhook", "webhook": map[string]any{"clientConfig": client(service)}}}})
}

// TestTrusts: only an object that names a wanted Secret, and has something to fill in, trusts it.
func TestTrusts(t *testing.T) {
	plain := definition("hook")
	delete(plain.Object["spec"].(map[string]any), "conversion")
	mutating := webhooks("hook")
	mutating.SetKind("MutatingWebhookConfiguration")
	elsewhere := webhooks("hook")
	elsewhere.SetAPIVersion("example.org/v1")
	unmarked := webhooks("hook")
	unmarked.SetAnnotations(nil)
	for name, c := range map[string]struct {
		reason string
		object *unstructured.Unstructured
		want   bool
	}{
		"validating": {"it has a webhook", webhooks("hook"), true},
		"mutating":   {"it has a webhook", mutating, true},
		"definition": {"it has a conversion webhook", definition("hook"), true},
		"other":      {"it names a Secret that was not requested", definition("other"), false},
		"unmarked":   {"it names none", unmarked, false},
		"plain":      {"a CRD without conversion trusts no authority", plain, false},
		"no hooks":   {"nothing to fill in", webhooks(), false},
		"foreign":    {"a kind of that name in another group", elsewhere, false},
		"garbled":    {"what is not a list has no items", object("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "x", "shop/hook-cert", map[string]any{"webhooks": "x"}), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Trusts(c.object, []Request{hook, audit}); got != c.want {
				t.Errorf("%s: %t", c.reason, got)
			}
		})
	}
}

// TestInject: every client is filled in, in a copy; clients without a Service are unchanged.
func TestInject(t *testing.T) {
	original := webhooks("hook", "hook")
	url := map[string]any{"name": "url.example.org", "clientConfig": map[string]any{"url": "https://example.org"}}
	original.Object["webhooks"] = append(original.Object["webhooks"].([]any), url, "garbled")
	filled := Inject(original, []byte("bundle"))
	for i, want := range []any{"YnVuZGxl", "YnVuZGxl", nil} {
		hooks := filled.Object["webhooks"].([]any)
		if got := at(hooks[i], "clientConfig")["caBundle"]; got != want {
			t.Errorf("webhook %d: %v, want %v", i, got, want)
		}
	}
	if got := at(original.Object["webhooks"].([]any)[0], "clientConfig")["caBundle"]; got != nil {
		t.Error("the original was changed")
	}
	if got := Bundle(Inject(definition("hook"), []byte("bundle"))); string(got) != "bundle" {
		t.Errorf("definition: %q", got)
	}
	none := webhooks()
	if Inject(none, []byte("bundle")) != none {
		t.Error("an object without clients was copied")
	}
}

// TestBundle: the bundle of the first client of a Service.
func TestBundle(t *testing.T) {
	mixed := Inject(webhooks("hook"), []byte("bundle"))
	url := map[string]any{"name": "url.example.org", "clientConfig": map[string]any{"url": "https://example.org", "caBundle": "b3RoZXI="}}
	mixed.Object["webhooks"] = append([]any{url}, mixed.Object["webhooks"].([]any)...)
	garbled := webhooks("hook")
	at(garbled.Object["webhooks"].([]any)[0], "clientConfig")["caBundle"] = "%"
	for name, c := range map[string]struct {
		reason string
		object *unstructured.Unstructured
		want   string
	}{
		"webhook":    {"it is filled in", Inject(webhooks("hook", "audit"), []byte("bundle")), "bundle"},
		"definition": {"it is filled in", Inject(definition("hook"), []byte("bundle")), "bundle"},
		"mixed":      {"what calls a URL is not ours to fill in", mixed, "bundle"},
		"nothing":    {"not filled in yet", webhooks("hook"), ""},
		"garbled":    {"the API server refuses it", garbled, ""},
		"none":       {"no webhook, no trust", webhooks(), ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Bundle(c.object); string(got) != c.want {
				t.Errorf("%q, want %q: %s", got, c.want, c.reason)
			}
		})
	}
}

// TestCarries: every client has to trust every authority of the bundle; whatever else it trusts does not matter.
func TestCarries(t *testing.T) {
	one, two := newCluster(hook), newCluster(hook)
	two.entropy.Uint64()
	first, second := one.make(t, false).Bundle, two.make(t, false).Bundle
	both := append(append([]byte{}, first...), second...)
	half := webhooks("hook", "audit")
	half.Object["webhooks"].([]any)[0] = at(Inject(webhooks("hook"), first).Object["webhooks"].([]any)[0])
	for name, c := range map[string]struct {
		reason string
		object *unstructured.Unstructured
		want   bool
	}{
		"same":    {"it is the bundle", Inject(webhooks("hook", "audit"), first), true},
		"more":    {"another order and more authorities do no harm", Inject(definition("hook"), append(append([]byte{}, second...), first...)), true},
		"other":   {"another authority", Inject(definition("hook"), second), false},
		"nothing": {"not filled in yet", definition("hook"), false},
		"half":    {"one of two webhooks", half, false},
		"garbled": {"another client wrote garbage", Inject(definition("hook"), []byte("garbage")), false},
		"none":    {"nothing fails by it", webhooks(), true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Carries(c.object, first); got != c.want {
				t.Errorf("%s: %t", c.reason, got)
			}
		})
	}
	if Carries(Inject(definition("hook"), first), both) {
		t.Error("one authority of two is not both")
	}
}
