// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"fmt"
	"strings"
	"testing"
)

// TestBundleImagePolicyAdmission writes what users write, rightly and wrongly.
func TestBundleImagePolicyAdmission(t *testing.T) {
	rule := func(fields string) string { return "images: [{prefix: quay.io/org, " + fields + "}]" }
	prefix := func(text string) string { return fmt.Sprintf("images: [{prefix: %q}]", text) }
	const (
		form   = "must begin with the host of a registry in lower case, and may go on with whole path components, without a tag: quay.io, quay.io/org or docker.io/library/nginx"
		at     = "spec.images[0]: Invalid value: "
		atHost = "spec.images[0].prefix: Invalid value: "
	)
	secrets := func(count int) string {
		var text strings.Builder
		text.WriteString("images:")
		for i := range count {
			fmt.Fprintf(&text, "\n- {prefix: quay.io/org%d, mirrors: [mirror.example.org], secretRef: {name: s%d}}", i, i)
		}
		return text.String()
	}
	checkAdmission(t, "BundleImagePolicy", map[string]admitted{
		"mirror":     {reason: "the usual rule", spec: rule("mirrors: [mirror.example.org:5000/quay]")},
		"all fields": {reason: "what a site writes", spec: rule("mirrors: [mirror.example.org], source: Never, tags: true, insecure: true, secretRef: {name: a}, certSecretRef: {name: b}, proxySecretRef: {name: c}, tenants: [All, shop], verify: {provider: cosign, secretRef: {name: keys}}")},
		"deny all":   {reason: "a closed site", spec: `images: [{prefix: "", deny: true}, {prefix: quay.io}]`},
		"verify all": {reason: "a signature of everything", spec: `images: [{prefix: "", verify: {provider: cosign, secretRef: {name: keys}}}]`},
		"no rules":   {reason: "it means nothing", spec: "images: []", want: "spec.images: Invalid value: 0: spec.images in body should have at least 1 items"},
		"prefix twice": {
			reason: "which one counts?", spec: "images: [{prefix: quay.io}, {prefix: quay.io}]", want: `spec.images[1]: Duplicate value: {"prefix":"quay.io"}`,
		},
		"tag":             {reason: "prefixes are of names", spec: prefix("quay.io/org/app:v1"), want: atHost + `"quay.io/org/app:v1": ` + form},
		"digest":          {reason: "prefixes are of names", spec: prefix("quay.io/org/app@sha256:1"), want: atHost + `"quay.io/org/app@sha256:1": ` + form},
		"upper case":      {reason: "hosts are in lower case", spec: prefix("Quay.io"), want: atHost + `"Quay.io": ` + form},
		"no host":         {reason: "a short name is of Docker Hub, and its full form has the host", spec: prefix("nginx"), want: atHost + `"nginx": ` + form},
		"end":             {reason: "whole path components", spec: prefix("quay.io/org/"), want: atHost + `"quay.io/org/": ` + form},
		"wildcard":        {reason: "prefixes suffice", spec: prefix("*.quay.io"), want: atHost + `"*.quay.io": ` + form},
		"default port":    {reason: "names of images do not have it, so that the rule would never count", spec: prefix("quay.io:443/org"), want: atHost + `"quay.io:443/org": must not have a default port, 80 or 443: write the host alone`},
		"label, port":     {reason: "a name without a dot is one of a registry only with its port", spec: prefix("registry:443/org")},
		"port with zeros": {reason: "ports are numbers", spec: prefix("quay.io:08443/org"), want: atHost + `"quay.io:08443/org": ` + form},
		"alias":           {reason: "the normalized name has docker.io", spec: prefix("index.docker.io/library"), want: atHost + `"index.docker.io/library": is another name of Docker Hub: write docker.io`},
		"mirror with a tag": {
			reason: "a mirror stands in the place of a prefix", spec: rule("mirrors: [mirror.example.org/a:v1]"),
			want: `spec.images[0].mirrors[0]: Invalid value: "mirror.example.org/a:v1": must begin with the host of a registry in lower case, and may go on with whole path components, without a tag: mirror.example.org:5000/quay`,
		},
		"no mirrors":   {reason: "an empty list means nothing", spec: rule("mirrors: []"), want: "spec.images[0].mirrors: Invalid value: 0: spec.images[0].mirrors in body should have at least 1 items"},
		"nine mirrors": {reason: "each is asked", spec: rule("mirrors: [" + strings.TrimSuffix(strings.Repeat("m.example.org, ", 9), ", ") + "]"), want: "spec.images[0].mirrors: Too many: 9: must have at most 8 items"},
		"source":       {reason: "two modes", spec: rule("source: Always"), want: `spec.images[0].source: Unsupported value: "Always": supported values: "Fallback", "Never"`},
		"never, nowhere": {
			reason: "there is no place to fetch from", spec: rule("source: Never"), want: at + "source Never needs mirrors, or there is no place to fetch from: add mirrors, or use deny",
		},
		"denied, with a mirror": {
			reason: "the two contradict each other", spec: rule("deny: true, mirrors: [mirror.example.org]"),
			want: at + "an image that is denied is never fetched: remove mirrors, the Secrets and verify, or deny",
		},
		"denied, with a key": {
			reason: "the two contradict each other", spec: rule("deny: true, verify: {provider: cosign, secretRef: {name: keys}}"),
			want: at + "an image that is denied is never fetched: remove mirrors, the Secrets and verify, or deny",
		},
		"mirror of everything": {
			reason: "what would its paths be?", spec: `images: [{prefix: "", mirrors: [mirror.example.org]}]`,
			want: at + "mirrors and secretRef are for the images of one registry: give a prefix that begins with its host",
		},
		"login of everything": {
			reason: "it would be sent to every registry", spec: `images: [{prefix: "", secretRef: {name: a}}]`,
			want: at + "mirrors and secretRef are for the images of one registry: give a prefix that begins with its host",
		},
		"tags, no mirror":     {reason: "it is about mirrors", spec: rule("tags: true"), want: at + "tags and insecure are about mirrors: add mirrors"},
		"insecure, no mirror": {reason: "it is about mirrors", spec: rule("insecure: true"), want: at + "tags and insecure are about mirrors: add mirrors"},
		"tenants, no login": {
			reason: "they say who may use it", spec: rule("tenants: [shop]"),
			want: at + "tenants says who may use the login in secretRef or certSecretRef: add one, or remove tenants",
		},
		"tenant": {
			reason: "namespaces, without patterns", spec: rule("secretRef: {name: a}, tenants: [\"team-*\"]"),
			want: `spec.images[0].tenants[0]: Invalid value: "team-*": must be the name of a namespace, or All`,
		},
		"workloads": {
			reason: "images of Pods are not rewritten", spec: rule("mirrors: [mirror.example.org], workloads: Rewrite"),
			want: `BundleImagePolicy in version "v1alpha1" cannot be handled as a BundleImagePolicy: strict decoding error: unknown field "spec.images[0].workloads"`,
		},
		"20 Secrets": {reason: "each is watched", spec: secrets(20)},
		"21 Secrets": {
			reason: "each is watched", spec: secrets(21),
			want: "spec.images: Invalid value: the rules may name at most 20 distinct Secrets: use one Secret for several prefixes, or divide the rules among several BundleImagePolicies",
		},
	})
}
