// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"strings"
	"testing"
)

// inCatalog is a deployment of a package, with further fields of spec.catalog.
func inCatalog(fields string) string {
	return anAccount + "\ncatalog: {package: shop" + fields + "}"
}

// TestCatalogPackageAdmission writes spec.catalog, rightly and wrongly.
func TestCatalogPackageAdmission(t *testing.T) {
	locked := "example.org/shop@sha256:" + strings.Repeat("a", 64)
	checkAdmission(t, "BundleDeployment", map[string]admitted{
		"package": {reason: "the shortest form", spec: inCatalog("")},
		"all fields": {reason: "nothing contradicts", spec: inCatalog(`, version: ">=1.2 <2", channels: [stable], catalogs: [community], upgradePolicy: SelfCertified, downgrade: Allow,
  image: {platform: linux/arm64, insecure: true, provider: generic, secretRef: {name: a}, certSecretRef: {name: b}, proxySecretRef: {name: c}, serviceAccountName: puller, verify: {provider: cosign, secretRef: {name: d}}},
  lock: {bundle: shop.v1.2.3, image: "` + locked + `"}, installed: {bundle: shop.v1.2.2, version: 1.2.2}`)},
		"selector":            {reason: "catalogs by label", spec: inCatalog(", catalogSelector: {matchLabels: {tier: upstream}}")},
		"no package":          {reason: "of what?", spec: anAccount + "\ncatalog: {}", want: "spec.catalog.package: Required value"},
		"package in capitals": {reason: "no package has such a name", spec: anAccount + "\ncatalog: {package: Shop}", want: `spec.catalog.package: Invalid value: "Shop": must be the name of a package: lower-case letters, digits, '-' and '.'`},
		"beside a source":     {reason: "which one?", spec: aSourceRef + "\n" + inCatalog(""), want: "spec: Invalid value: exactly one of the fields in [source sourceRef catalog] must be set"},
		"names and labels":    {reason: "which of them?", spec: inCatalog(", catalogs: [a], catalogSelector: {}"), want: "spec.catalog: Invalid value: at most one of the fields in [catalogs catalogSelector] may be set"},
		"policy":              {reason: "only what is written", spec: inCatalog(", upgradePolicy: Always"), want: `spec.catalog.upgradePolicy: Unsupported value: "Always": supported values: "CatalogProvided", "SelfCertified"`},
		"downgrade of edges":  {reason: "it would have no effect", spec: inCatalog(", downgrade: Allow"), want: "spec.catalog: Invalid value: downgrade: Allow needs upgradePolicy: SelfCertified; a lower version to which an edge of the catalog leads is always possible"},
		"lock of a tag": {
			reason: "a tag moves", spec: inCatalog(`, lock: {bundle: shop.v1.2.3, image: "example.org/shop:v1"}`),
			want: `spec.catalog.lock.image: Invalid value: "example.org/shop:v1": must be a repository with a digest, such as quay.io/org/bundle@sha256:...`,
		},
	})
	checkChanges(t, "BundleDeployment", map[string]change{
		"another range":   {reason: "an upgrade", from: inCatalog(""), to: inCatalog(", version: 1.x")},
		"another package": {reason: "another bundle altogether", from: inCatalog(""), to: strings.Replace(inCatalog(""), "shop", "bakery", 1), want: "spec.catalog: Invalid value: package cannot change; create another BundleDeployment instead"},
	})
}
