// SPDX-License-Identifier: Apache-2.0

package format

// Files on the volumes of the controllers. Archives of artifacts, and the .sha256 files and sums beside them, have formats of others.
var (
	// Snapshot is what was applied last: after its line come two parts, the value and the addition. Each part is its length in eight
	// bytes, big endian, its SHA-256, and a zstd frame. Package snapshot says what both contain.
	Snapshot = Format{
		"snapshot", 4, "`/cache/applied` of the deployment controller: what was applied last",
		"the applied revision is converted again from its artifact; the file is written again",
	}
	// Pins are the names of archives, one a line.
	Pins = Format{
		"pins", 1, "`/cache/artifacts/.pins` of the deployment controller: which archives are not evicted",
		"written again by the next reconcile of the deployment",
	}
	// Package is an answer of a catalog: a header in JSON, in one line, and the parsed package in JSON.
	Package = Format{
		"package", 1, "`/cache/packages` of the deployment controller: what catalogs say about packages",
		"asked for again",
	}
	// Signatures is JSON of what accepted the parts of an artifact.
	Signatures = Format{
		"signatures", 1, "`/data` of the source controller, beside archives: the signatures by which they were accepted",
		"when the trusted keys change, the upstream is asked instead",
	}
	// Catalog is JSON of the record of a catalog.
	Catalog = Format{
		"catalog", 1, "`/data/catalogs/records` of the source controller: which contents a BundleCatalog serves",
		"fetched and indexed again",
	}
	// Index is CBOR; its version covers the streams of blobs that it points into.
	Index = Format{
		"index", 1, "`/data/catalogs/contents` of the source controller: where the packages of a catalog are",
		"fetched and indexed again",
	}
)

// State that the controllers keep in the API.
var (
	// Inventory is the packed form of status.inventory, and its hashes.
	Inventory = Format{
		"inventory", 1, "`status.inventory.compressed` of a BundleDeployment with many objects",
		"objects are found by what was applied last and by their labels, as for a lost inventory",
	}
	// HashKey is a key that is encrypted with one of the installation.
	HashKey = Format{
		"hash-key", 1, "`hashKey` in `status.internal` of a BundleDeployment",
		"derived again from the key of the installation",
	}
	// Plan are the digests that approvals are about, and the signatures of records with them: of contents, material, terms, keys
	// and plans, of grounds and inputs.
	Plan = Format{
		"plan", 2, "`status.plan`, `status.hooks`, and `executed` and `artifact` in `status.internal` of a BundleDeployment, `spec.plan` of a BundleApproval: digests, and proofs",
		"computed again; a plan that was executed needs no other approval if it is known to change nothing, and one that waits is proposed again",
	}
	// HookRun identifies the runs of hooks.
	HookRun = Format{
		"hook-run", 1, "`status.hooks.run` of a BundleDeployment, and the annotation of the hooks' objects",
		"a hook that is running is followed by its UID; one that has ended is not run again",
	}
	// CatalogQuery are digests of what a package was resolved from.
	CatalogQuery = Format{
		"catalog-query", 1, "`status.catalog` of a BundleDeployment: digests of what it was resolved from",
		"resolved again",
	}
	// Revision is the data of a revision of a rollout. The digest of the revision does not depend on its version.
	Revision = Format{
		"revision", 2, "`data` of the ControllerRevisions of a BundleRollout",
		"the rollout stops with the reason WrittenByAnotherVersion; its BundleDeployments stay as they are",
	}
	// RolloutSpec is the hash of a rendered spec.
	RolloutSpec = Format{
		"rollout-spec", 2, "annotation `satchel.dev/rollout-spec` of a BundleDeployment",
		"the specs are compared instead of their hashes",
	}
	// Installation is the record of satchel install.
	Installation = Format{
		"installation", 1, "ConfigMap `satchel-installation`: what satchel install installed",
		"`satchel install` and `satchel uninstall` ask for the other version",
	}
)

// All are the formats, in the order of docs/dev/formats.md.
func All() []Format {
	return []Format{
		Snapshot, Pins, Package, Signatures, Catalog, Index,
		Inventory, HashKey, Plan, HookRun, CatalogQuery, Revision, RolloutSpec, Installation,
	}
}
