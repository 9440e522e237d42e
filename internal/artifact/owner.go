// SPDX-License-Identifier: Apache-2.0

package artifact

import (
	"fmt"
	"path"
	"strings"

	"github.com/opencontainers/go-digest"
	"k8s.io/apimachinery/pkg/util/validation"
)

// How artifacts and their digests are written.
const (
	ArchiveSuffix  = ".tar.gz"
	ChecksumSuffix = ".sha256"
	DigestPrefix   = "sha256:"
)

// Owner is the object that an artifact belongs to. Kind is lower-case, as in "bundlesource".
type Owner struct{ Kind, Namespace, Name string }

// SourceOwner is the BundleSource of that name as an owner. Owners are part of the URLs of artifacts, so this is a contract
// between the two controllers: one publishes under it, the other accepts only URLs with it.
func SourceOwner(namespace, name string) Owner {
	return Owner{Kind: SourceKind, Namespace: namespace, Name: name}
}

// String is "kind/namespace/name".
func (o Owner) String() string { return o.Kind + "/" + o.Namespace + "/" + o.Name }

// Validate refuses an owner with parts that are not DNS names: it could name a folder of another owner.
func (o Owner) Validate() error {
	parts := []struct {
		field, value string
		problems     []string
	}{
		{"kind", o.Kind, validation.IsDNS1123Label(o.Kind)},
		{"namespace", o.Namespace, validation.IsDNS1123Label(o.Namespace)},
		{"name", o.Name, validation.IsDNS1123Subdomain(o.Name)},
	}
	for _, part := range parts {
		if len(part.problems) > 0 {
			return fmt.Errorf("owner %s %.70q: %s", part.field, part.value, part.problems[0])
		}
	}
	return nil
}

// Folder is the owner's folder below the storage folder.
func (o Owner) Folder() string { return path.Join(o.Kind, o.Namespace, o.Name) }

// File is the path of the owner's artifact with that identity (64 hex digits), below the storage folder and in URLs.
func (o Owner) File(identity string) string { return o.Folder() + "/" + identity + ArchiveSuffix }

// IsArchive tells whether Owner.file writes that name for some owner and identity.
func IsArchive(name string) bool {
	parts := strings.Split(name, "/")
	if len(parts) != 4 {
		return false
	}
	o := Owner{Kind: parts[0], Namespace: parts[1], Name: parts[2]}
	_, ok := ParseArchiveName(parts[3])
	return ok && o.Validate() == nil
}

// ParseArchiveName returns the identity in the base name of an archive.
func ParseArchiveName(base string) (identity string, ok bool) {
	identity, ok = strings.CutSuffix(base, ArchiveSuffix)
	return identity, ok && IsHexDigest(identity)
}

// IsHexDigest tells whether s is a SHA-256 in lower-case hexadecimal digits.
func IsHexDigest(s string) bool { return digest.SHA256.Validate(s) == nil }

// ParseDigest returns the hexadecimal digits of "sha256:<hex>".
func ParseDigest(text string) (string, error) {
	digits, ok := strings.CutPrefix(text, DigestPrefix)
	if !ok || !IsHexDigest(digits) {
		return "", fmt.Errorf("digest %.80q is not sha256: and 64 lower-case hexadecimal digits", text)
	}
	return digits, nil
}

// FormatRevision is "<reference>@sha256:<identity>", or "sha256:<identity>" without a reference.
func FormatRevision(reference, identity string) string {
	if reference == "" {
		return DigestPrefix + identity
	}
	return reference + "@" + DigestPrefix + identity
}

// Identity returns what follows the last @ of a revision, or all of it: "sha256:<identity>" in every revision that a Store
// made.
func Identity(revision string) string { return revision[strings.LastIndexByte(revision, '@')+1:] }

// ParseIdentity returns the hexadecimal digits of the identity in a revision, and is the inverse of revisionOf.
func ParseIdentity(revision string) (string, error) {
	identity, err := ParseDigest(Identity(revision))
	if err != nil {
		return "", fmt.Errorf("revision %.120q: %w", revision, err)
	}
	return identity, nil
}

// SourceKind is the kind of the owners with artifacts from a Store of ours. Those of others have no identity of their
// content: only the digest of the file can be checked.
const SourceKind = "bundlesource"

// NamespaceOf is the namespace in the path of a file.
func NamespaceOf(file string) string { return strings.Split(file, "/")[1] }
