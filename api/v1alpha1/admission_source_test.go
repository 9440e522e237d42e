// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"fmt"
	"strings"
	"testing"
)

const anImage = "sources: [{image: {reference: example.org/bundle:v1}}]"

const (
	uploadDigest  = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	anUpload      = "sources: [{upload: {digest: " + uploadDigest + "}}]"
	anUploadIsAll = "spec: Invalid value: an upload is the whole artifact: it must be the only source, without a destination, and without ignore (leave files out when uploading)"
)

const credentialInURL = "must not have a credential such as token= in its query, where every reader of this object sees it: put it into a Secret and name that in secretRef"

// TestBundleSourceAdmission writes what users write, rightly and wrongly.
func TestBundleSourceAdmission(t *testing.T) {
	checkAdmission(t, "BundleSource", map[string]admitted{
		"image tag":    {reason: "the usual source", spec: anImage},
		"longest name": {reason: "names become label values", name: strings.Repeat("a", 63), spec: anImage},
		"name too long": {
			reason: "a label value has at most 63 characters", name: strings.Repeat("a", 64), spec: anImage,
			want: "<nil>: Invalid value: the name must have at most 63 characters",
		},
		"no spec":      {reason: "a source without sources means nothing", want: "spec: Required value"},
		"no sources":   {reason: "a source without sources means nothing", spec: "interval: 1m", want: "spec.sources: Required value"},
		"zero sources": {reason: "a source without sources means nothing", spec: "sources: []", want: "spec.sources: Invalid value: 0: spec.sources in body should have at least 1 items"},
		"too many sources": {
			reason: "one tree of 16 parts is enough", spec: "sources:" + strings.Repeat("\n- {image: {reference: a}}", 17), want: `spec.sources: Too many: 17: must have at most 16 items`,
		},
		"unknown field": {
			reason: "a typing error is told, as kubectl tells it", spec: anImage + "\nintervall: 1m", want: `BundleSource in version "v1alpha1" cannot be handled as a BundleSource: strict decoding error: unknown field "spec.intervall"`,
		},
		"secret of another namespace": {
			reason: "no reference names a namespace", spec: "sources: [{configMap: {name: a, namespace: b}}]", want: `BundleSource in version "v1alpha1" cannot be handled as a BundleSource: strict decoding error: unknown field "spec.sources[0].configMap.namespace"`,
		},
		"no kind of source": {reason: "one kind has to be chosen", spec: "sources: [{destination: a}]", want: "spec.sources[0]: Invalid value: exactly one of the fields in [image git http helm configMap upload] must be set"},
		"two kinds of source": {
			reason: "and only one", spec: "sources: [{image: {reference: a}, configMap: {name: a}}]", want: "spec.sources[0]: Invalid value: exactly one of the fields in [image git http helm configMap upload] must be set",
		},
		"configMap":          {reason: "small bundles live in the cluster", spec: "sources: [{configMap: {name: a}}]"},
		"nameless configMap": {reason: "a reference has a name", spec: `sources: [{configMap: {name: ""}}]`, want: `spec.sources[0].configMap.name: Invalid value: "": spec.sources[0].configMap.name in body should be at least 1 chars long`},
		"empty configMap":    {reason: "a reference has a name", spec: `sources: [{configMap: {}}]`, want: "spec.sources[0].configMap.name: Required value"},
		"upload":             {reason: "a folder of any size", spec: anUpload},
		"upload, immutable":  {reason: "a digest never moves", spec: anUpload + "\nimmutable: true"},
		"upload of anything": {reason: "which content?", spec: "sources: [{upload: {}}]", want: "spec.sources[0].upload.digest: Required value"},
		"upload of a tag":    {reason: "content has a digest, and no name", spec: "sources: [{upload: {digest: latest}}]", want: `spec.sources[0].upload.digest: Invalid value: "latest": must be sha256: and 64 lower-case hexadecimal digits; satchel run computes it`},
		"upload in a folder": {reason: "its digest is that of the artifact", spec: "sources: [{destination: a, upload: {digest: " + uploadDigest + "}}]", want: anUploadIsAll},
		"upload, root named": {reason: "empty means the root", spec: "sources: [{destination: \"\", upload: {digest: " + uploadDigest + "}}]"},
		"upload and ignore":  {reason: "its digest is that of the artifact", spec: anUpload + "\nignore: /docs/", want: anUploadIsAll},
		"upload and image":   {reason: "its digest is that of the artifact", spec: "sources: [{destination: a, upload: {digest: " + uploadDigest + "}}, {destination: b, image: {reference: a}}]", want: anUploadIsAll},
		"immutable":          {reason: "as ConfigMaps know it", spec: anImage + "\nimmutable: true"},
		"suspended":          {reason: "as Flux knows it", spec: anImage + "\nsuspend: true"},
	})
}

// TestM22Destinations composes sources.
func TestM22Destinations(t *testing.T) {
	one := func(destination string) string {
		return "sources: [{destination: " + destination + ", image: {reference: a}}]"
	}
	two := func(a, b string) string {
		return "sources: [{destination: " + a + ", image: {reference: a}}, {destination: " + b + ", image: {reference: b}}]"
	}
	checkAdmission(t, "BundleSource", map[string]admitted{
		"root":             {reason: "one source may fill all", spec: one(`""`)},
		"folder":           {reason: "or a folder", spec: one("a/b/v1.2_3-x")},
		"siblings":         {reason: "neither lies within the other", spec: two("a", "b")},
		"common beginning": {reason: "ab is no folder of a", spec: two("a", "ab")},
		"dash sorts first": {reason: "a-b sorts before a/b", spec: two("a-b", "a/b")},
		"equal":            {reason: "two sources in one folder would mix", spec: two("a", "a"), want: "spec.sources: Invalid value: with several sources each needs a destination of its own, and none may lie within another"},
		"within":           {reason: "a/b lies within a", spec: two("a", "a/b"), want: "spec.sources: Invalid value: with several sources each needs a destination of its own, and none may lie within another"},
		"within, reversed": {reason: "in either order", spec: two("a/b", "a"), want: "spec.sources: Invalid value: with several sources each needs a destination of its own, and none may lie within another"},
		"root and folder":  {reason: "everything lies within the root", spec: two(`""`, "a"), want: "spec.sources: Invalid value: with several sources each needs a destination of its own, and none may lie within another"},
		"without, twice":   {reason: "both would fill the root", spec: "sources: [{image: {reference: a}}, {image: {reference: b}}]", want: "spec.sources: Invalid value: with several sources each needs a destination of its own, and none may lie within another"},
		"one without":      {reason: "everything lies within the root", spec: "sources: [{destination: a, image: {reference: a}}, {image: {reference: b}}]", want: "spec.sources: Invalid value: with several sources each needs a destination of its own, and none may lie within another"},
		"without, first":   {reason: "in either order", spec: "sources: [{image: {reference: a}}, {destination: b, image: {reference: b}}]", want: "spec.sources: Invalid value: with several sources each needs a destination of its own, and none may lie within another"},
		"parent":           {reason: "nothing leaves the tree", spec: one("../a"), want: `spec.sources[0].destination: Invalid value: "../a": must be a relative folder such as base/manifests: letters, digits, '.', '_' and '-', each part beginning with a letter, digit or '_' and not ending in '.'`},
		"inner parent":     {reason: "nothing leaves the tree", spec: one("a/../b"), want: `spec.sources[0].destination: Invalid value: "a/../b": must be a relative folder such as base/manifests: letters, digits, '.', '_' and '-', each part beginning with a letter, digit or '_' and not ending in '.'`},
		"absolute":         {reason: "nothing leaves the tree", spec: one("/a"), want: `spec.sources[0].destination: Invalid value: "/a": must be a relative folder such as base/manifests: letters, digits, '.', '_' and '-', each part beginning with a letter, digit or '_' and not ending in '.'`},
		"here":             {reason: "one folder has one name", spec: one("./a"), want: `spec.sources[0].destination: Invalid value: "./a": must be a relative folder such as base/manifests: letters, digits, '.', '_' and '-', each part beginning with a letter, digit or '_' and not ending in '.'`},
		"trailing slash":   {reason: "one folder has one name", spec: one("a/"), want: `spec.sources[0].destination: Invalid value: "a/": must be a relative folder such as base/manifests: letters, digits, '.', '_' and '-', each part beginning with a letter, digit or '_' and not ending in '.'`},
		"double slash":     {reason: "one folder has one name", spec: one("a//b"), want: `spec.sources[0].destination: Invalid value: "a//b": must be a relative folder such as base/manifests: letters, digits, '.', '_' and '-', each part beginning with a letter, digit or '_' and not ending in '.'`},
		"hidden":           {reason: "VCS folders are left out", spec: one(".git"), want: `spec.sources[0].destination: Invalid value: ".git": must be a relative folder such as base/manifests: letters, digits, '.', '_' and '-', each part beginning with a letter, digit or '_' and not ending in '.'`},
		"dash":             {reason: "a dash begins an option", spec: one("-a"), want: `spec.sources[0].destination: Invalid value: "-a": must be a relative folder such as base/manifests: letters, digits, '.', '_' and '-', each part beginning with a letter, digit or '_' and not ending in '.'`},
		"backslash":        {reason: "not portable", spec: one(`a\b`), want: "spec.sources[0].destination: Invalid value: \"a\\\\b\": must be a relative folder such as base/manifests: letters, digits, '.', '_' and '-', each part beginning with a letter, digit or '_' and not ending in '.'"},
		"too long":         {reason: "paths end somewhere", spec: one(strings.Repeat("a", 256)), want: "spec.sources[0].destination: Too long: may not be more than 255 bytes"},
	})
}

// TestM22References names images, commits and archives.
func TestM22References(t *testing.T) {
	image := func(fields string) string { return "sources: [{image: {" + fields + "}}]" }
	git := func(fields string) string {
		return "sources: [{git: {url: https://example.org/r.git, " + fields + "}}]"
	}
	url := func(fields string) string { return "sources: [{http: {" + fields + "}}]" }
	chart := func(fields string) string {
		return "sources: [{helm: {url: https://example.org/charts, chart: app, " + fields + "}}]"
	}
	commit, sum := strings.Repeat("c", 40), strings.Repeat("e", 64)
	checkAdmission(t, "BundleSource", map[string]admitted{
		"digest":            {reason: "a pinned image", spec: image("reference: example.org/bundle@sha256:" + sum)},
		"port":              {reason: "a registry with a port", spec: image(`reference: "localhost:5000/bundle"`)},
		"scheme":            {reason: "Flux writes oci://, images have none", spec: image("reference: oci://example.org/a"), want: `spec.sources[0].image.reference: Invalid value: "oci://example.org/a": must be an image reference without a scheme, such as quay.io/org/bundle:v1.2.3`},
		"blank":             {reason: "no reference has one", spec: image("reference: example.org/a b"), want: `spec.sources[0].image.reference: Invalid value: "example.org/a b": must be an image reference such as quay.io/org/bundle:v1.2.3, without blanks, a query or other signs`},
		"image query":       {reason: "no reference has one, and it may hold a secret", spec: image(`reference: "example.org/a?token=x"`), want: `spec.sources[0].image.reference: Invalid value: "example.org/a?token=x": must be an image reference such as quay.io/org/bundle:v1.2.3, without blanks, a query or other signs`},
		"address":           {reason: "a registry without a name", spec: image(`reference: "[fd00::1]:5000/a/b_c-d:v1.0_rc-1"`)},
		"no ref":            {reason: "which image?", spec: image("platform: linux/amd64"), want: "spec.sources[0].image.reference: Required value"},
		"empty ref":         {reason: "which image?", spec: image(`reference: ""`), want: `spec.sources[0].image.reference: Invalid value: "": spec.sources[0].image.reference in body should be at least 1 chars long`},
		"long ref":          {reason: "references end somewhere", spec: image("reference: " + strings.Repeat("a", 513)), want: "spec.sources[0].image.reference: Too long: may not be more than 512 bytes"},
		"image range":       {reason: "moves", spec: image(`reference: "localhost:5000/bundle", version: ">=1.2 <2"`)},
		"range and tag":     {reason: "which one?", spec: image(`reference: "example.org/bundle:v1", version: 1.x`), want: "spec.sources[0].image: Invalid value: version chooses the tag: remove tag and digest from reference"},
		"range and digest":  {reason: "which one?", spec: image("reference: example.org/bundle@sha256:" + sum + ", version: 1.x"), want: "spec.sources[0].image: Invalid value: version chooses the tag: remove tag and digest from reference"},
		"empty range":       {reason: "of which versions?", spec: image(`reference: a, version: ""`), want: `spec.sources[0].image.version: Invalid value: "": spec.sources[0].image.version in body should be at least 1 chars long`},
		"platform":          {reason: "a variant", spec: image("reference: a, platform: linux/arm64/v8")},
		"no platform":       {reason: "os without arch", spec: image("reference: a, platform: linux"), want: `spec.sources[0].image.platform: Invalid value: "linux": must be os/arch or os/arch/variant, such as linux/amd64`},
		"branch":            {reason: "moves", spec: git("ref: {branch: main}")},
		"tag":               {reason: "moves seldom", spec: git("ref: {tag: v1}")},
		"semver":            {reason: "moves", spec: git(`ref: {version: ">=1.2 <2"}`)},
		"commit":            {reason: "never moves", spec: git("ref: {commit: " + commit + "}")},
		"default branch":    {reason: "the repository decides", spec: git("path: deploy/prod")},
		"branch and tag":    {reason: "which one?", spec: git("ref: {branch: main, tag: v1}"), want: "spec.sources[0].git.ref: Invalid value: at most one of the fields in [branch tag version name commit] may be set"},
		"empty branch":      {reason: "which branch?", spec: git(`ref: {branch: ""}`), want: `spec.sources[0].git.ref.branch: Invalid value: "": spec.sources[0].git.ref.branch in body should be at least 1 chars long`},
		"short commit":      {reason: "abbreviations become ambiguous", spec: git("ref: {commit: abc1234}"), want: `spec.sources[0].git.ref.commit: Invalid value: "abc1234": must be the full hash of a commit: 40 lower-case hexadecimal digits`},
		"semver bomb":       {reason: "ranges that take for ever", spec: git("ref: {version: \"" + strings.Repeat(">=0 || ", 10_000) + ">=0\"}"), want: "spec.sources[0].git.ref.version: Too long: may not be more than 255 bytes"},
		"directory above":   {reason: "nothing leaves the repository", spec: git("path: a/../../b"), want: `spec.sources[0].git.path: Invalid value: "a/../../b": must be a relative path without ..`},
		"directory at root": {reason: "relative to the repository", spec: git("path: /etc"), want: `spec.sources[0].git.path: Invalid value: "/etc": must be a relative path without ..`},
		"ssh":               {reason: "keys are needed", spec: "sources: [{git: {url: ssh://git@example.org/r.git}}]", want: `spec.sources[0].git: Invalid value: an ssh:// repository needs secretRef, a Secret with identity and known_hosts`},
		"ssh with keys":     {reason: "keys are there", spec: "sources: [{git: {url: ssh://git@example.org/r.git, secretRef: {name: keys}}}]"},
		"scp":               {reason: "no URL", spec: `sources: [{git: {url: "git@example.org:r.git"}}]`, want: `spec.sources[0].git.url: Invalid value: "git@example.org:r.git": must be a URL that begins with https:// (or http://) and holds neither user name, password nor query, or ssh://user@host/path`},
		"file":              {reason: "the controller's own disk", spec: "sources: [{git: {url: file:///etc}}]", want: `spec.sources[0].git.url: Invalid value: "file:///etc": must be a URL that begins with https:// (or http://) and holds neither user name, password nor query, or ssh://user@host/path`},
		"git password":      {reason: "secrets do not belong into URLs", spec: "sources: [{git: {url: https://u:p@example.org/r.git}}]", want: `spec.sources[0].git.url: Invalid value: "https://u:p@example.org/r.git": must be a URL that begins with https:// (or http://) and holds neither user name, password nor query, or ssh://user@host/path`},
		"git query":         {reason: "no repository has one", spec: `sources: [{git: {url: "https://example.org/r.git?token=x"}}]`, want: `spec.sources[0].git.url: Invalid value: "https://example.org/r.git?token=x": must be a URL that begins with https:// (or http://) and holds neither user name, password nor query, or ssh://user@host/path`},
		"ssh query":         {reason: "nor over ssh", spec: `sources: [{git: {url: "ssh://git@example.org/r.git?x", secretRef: {name: keys}}}]`, want: `spec.sources[0].git.url: Invalid value: "ssh://git@example.org/r.git?x": must be a URL that begins with https:// (or http://) and holds neither user name, password nor query, or ssh://user@host/path`},
		"archive":           {reason: "moves", spec: url("url: https://example.org/b.tgz")},
		"pinned archive":    {reason: "never moves", spec: url("url: https://example.org/b.tgz, digest: sha256:" + sum)},
		"scoped archive":    {reason: "a path may hold an at sign", spec: url("url: https://example.org/@team/b.tgz")},
		"ftp":               {reason: "not supported", spec: url("url: ftp://example.org/b.tgz"), want: `spec.sources[0].http.url: Invalid value: "ftp://example.org/b.tgz": must be a URL that begins with https:// (or http://) and holds neither user name nor password`},
		"url password":      {reason: "secrets do not belong into URLs", spec: url("url: https://u:p@example.org/b.tgz"), want: `spec.sources[0].http.url: Invalid value: "https://u:p@example.org/b.tgz": must be a URL that begins with https:// (or http://) and holds neither user name nor password`},
		"M29 token":         {reason: "every reader of the source would have it", spec: url(`url: "https://example.org/b.tgz?a=b&token=x"`), want: `spec.sources[0].http.url: Invalid value: "https://example.org/b.tgz?a=b&token=x": ` + credentialInURL},
		"M29 private token": {reason: "as GitLab has it, in any case", spec: url(`url: "https://example.org/b.tgz?Private_Token=x"`), want: `spec.sources[0].http.url: Invalid value: "https://example.org/b.tgz?Private_Token=x": ` + credentialInURL},
		"M29 signature": {
			reason: "the URL of the signature, too", spec: url(`url: "https://example.org/b.tgz", verify: {secretRef: {name: a}, signatureURL: "https://example.org/b.sig?api-key=x"}`),
			want: `spec.sources[0].http.verify.signatureURL: Invalid value: "https://example.org/b.sig?api-key=x": ` + credentialInURL,
		},
		"M29 signed URL": {reason: "good for one object and for a while", spec: url(`url: "https://example.org/b.tgz?X-Amz-Security-Token=x&X-Amz-Signature=y&tokens=3"`)},
		"chart":          {reason: "the newest version", spec: chart("")},
		"chart range":    {reason: "the newest in the range", spec: chart(`version: ">=1.2 <2", secretRef: {name: a}, passCredentials: true`)},
		"pinned chart":   {reason: "never moves", spec: chart("version: v1.2.3-rc.1+b.2, digest: sha256:" + sum)},
		"digest of a range": {
			reason: "a digest is that of one archive", spec: chart("version: 1.x, digest: sha256:" + sum),
			want: "spec.sources[0].helm: Invalid value: a digest is that of one archive: set version to an exact version such as 1.2.3, or remove the digest",
		},
		"digest of the newest": {
			reason: "a digest is that of one archive", spec: chart("digest: sha256:" + sum),
			want: "spec.sources[0].helm: Invalid value: a digest is that of one archive: set version to an exact version such as 1.2.3, or remove the digest",
		},
		"nothing to pass": {
			reason: "a field without effect", spec: chart("passCredentials: true"), want: "spec.sources[0].helm: Invalid value: passCredentials has no effect without secretRef",
		},
		"registry": {
			reason: "it has no index", spec: "sources: [{helm: {url: oci://ghcr.io/org, chart: app}}]",
			want: `spec.sources[0].helm.url: Invalid value: "oci://ghcr.io/org": a registry has no index: use image with reference: HOST/PATH/CHART, and version for a range, instead of helm`,
		},
		"chart password": {
			reason: "secrets do not belong into URLs", spec: "sources: [{helm: {url: https://u:p@example.org, chart: app}}]",
			want: `spec.sources[0].helm.url: Invalid value: "https://u:p@example.org": must be a URL that begins with https:// (or http://) and holds neither user name nor password`,
		},
		"M29 chart token": {
			reason: "every reader of the source would have it", spec: `sources: [{helm: {url: "https://example.org/?token=x", chart: app}}]`,
			want: `spec.sources[0].helm.url: Invalid value: "https://example.org/?token=x": ` + credentialInURL,
		},
		"chart path": {
			reason: "a name", spec: "sources: [{helm: {url: https://example.org, chart: stable/app}}]",
			want: `spec.sources[0].helm.chart: Invalid value: "stable/app": must be the name of a chart such as podinfo: letters, digits, '.', '_' and '-'`,
		},
		"no chart":     {reason: "a repository has several", spec: "sources: [{helm: {url: https://example.org}}]", want: "spec.sources[0].helm.chart: Required value"},
		"md5":          {reason: "broken", spec: url("url: https://example.org/b.tgz, digest: md5:" + sum[:32]), want: `spec.sources[0].http.digest: Invalid value: "md5:eeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee": must be sha256:, sha384: or sha512: and the whole hash in hexadecimal`},
		"short digest": {reason: "half a pin is none", spec: url("url: https://example.org/b.tgz, digest: sha256:" + sum[:63]), want: `spec.sources[0].http.digest: Invalid value: "sha256:eeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee": must be sha256:, sha384: or sha512: and the whole hash in hexadecimal`},
	})
}

// T23: the sources of one object name at most 20 distinct Secrets, in any of their fields.
func TestT23SecretsOfOneObject(t *testing.T) {
	const refused = "the sources may name at most 20 distinct Secrets: use one Secret for several sources, or divide the sources among several BundleSources"
	// sources are 13 images, a repository, an archive and a chart, with a reference to a Secret in each field that there is. The names
	// repeat after so many.
	sources := func(distinct int) string {
		var text strings.Builder
		name := 0
		next := func() string { name++; return fmt.Sprintf("{name: s%d}", name%distinct) }
		text.WriteString("sources:")
		for i := range 13 {
			fmt.Fprintf(&text, "\n- {destination: d%d, image: {reference: example.org/a, secretRef: %s, certSecretRef: %s, proxySecretRef: %s, verify: {provider: cosign, secretRef: %s, trustedRootSecretRef: %s}}}",
				i, next(), next(), next(), next(), next())
		}
		fmt.Fprintf(&text, "\n- {destination: g, git: {url: https://example.org/r.git, secretRef: %s, proxySecretRef: %s, verify: {secretRef: %s}}}", next(), next(), next())
		fmt.Fprintf(&text, "\n- {destination: h, http: {url: https://example.org/a.tgz, secretRef: %s, certSecretRef: %s, proxySecretRef: %s, verify: {signatureURL: https://example.org/a.sig, secretRef: %s, trustedRootSecretRef: %s}}}",
			next(), next(), next(), next(), next())
		fmt.Fprintf(&text, "\n- {destination: i, helm: {url: https://example.org/charts, chart: app, secretRef: %s, certSecretRef: %s, proxySecretRef: %s}}", next(), next(), next())
		return text.String()
	}
	indented := func(text string) string { return strings.ReplaceAll("\n"+text, "\n", "\n  ") }
	checkAdmission(t, "BundleSource", map[string]admitted{
		"one":  {reason: "76 references to one Secret", spec: sources(1)},
		"20":   {reason: "each is referred to several times", spec: sources(20)},
		"21":   {reason: "the admission policy has no budget for it", spec: sources(21), want: "spec.sources: Invalid value: " + refused},
		"many": {reason: "all references differ", spec: sources(1000), want: "spec.sources: Invalid value: " + refused},
	})
	checkAdmission(t, "BundleDeployment", map[string]admitted{
		"20": {reason: "an inline source", spec: "serviceAccountName: a\nsource:" + indented(sources(20))},
		"21": {reason: "one too many", spec: "serviceAccountName: a\nsource:" + indented(sources(21)), want: "spec.source.sources: Invalid value: " + refused},
	})
}

// TestImmutableSources edits sources that must not change.
func TestImmutableSources(t *testing.T) {
	const other = "sources: [{image: {reference: example.org/bundle:v2}}]"
	checkChanges(t, "BundleSource", map[string]change{
		"mutable":            {reason: "the usual upgrade", from: anImage, to: other},
		"made immutable":     {reason: "from now on", from: anImage, to: other + "\nimmutable: true"},
		"interval":           {reason: "only the sources are fixed", from: anImage + "\nimmutable: true", to: anImage + "\nimmutable: true\ninterval: 1h"},
		"sources":            {reason: "what immutable is for", from: anImage + "\nimmutable: true", to: other + "\nimmutable: true", want: "spec: Invalid value: sources cannot change while immutable is true; create another BundleSource instead"},
		"unset":              {reason: "or it would mean nothing", from: anImage + "\nimmutable: true", to: anImage + "\nimmutable: false", want: "spec: Invalid value: immutable cannot be unset; create another BundleSource instead"},
		"left out":           {reason: "the same as unset", from: anImage + "\nimmutable: true", to: anImage, want: "spec: Invalid value: immutable cannot be unset; create another BundleSource instead"},
		"unset with sources": {reason: "nor both at once", from: anImage + "\nimmutable: true", to: other, want: "[spec: Invalid value: immutable cannot be unset; create another BundleSource instead, spec: Invalid value: sources cannot change while immutable is true; create another BundleSource instead]"},
		"source added": {reason: "an addition is a change", from: "sources: [{destination: a, image: {reference: a}}]\nimmutable: true",
			to: "sources: [{destination: a, image: {reference: a}}, {destination: b, image: {reference: b}}]\nimmutable: true", want: "spec: Invalid value: sources cannot change while immutable is true; create another BundleSource instead"},
	})
}
