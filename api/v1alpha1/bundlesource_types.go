// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"github.com/fluxcd/pkg/apis/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// BundleSourceSpec says where a bundle comes from. What the references resolve to is fetched by digest, composed into
// one tree and published as an immutable artifact.
//
// +kubebuilder:validation:XValidation:rule="!(has(oldSelf.immutable) && oldSelf.immutable) || (has(self.immutable) && self.immutable)",message="immutable cannot be unset; create another BundleSource instead"
// +kubebuilder:validation:XValidation:rule="!(has(oldSelf.immutable) && oldSelf.immutable) || self.sources == oldSelf.sources",message="sources cannot change while immutable is true; create another BundleSource instead"
// +kubebuilder:validation:XValidation:rule="!(has(oldSelf.immutable) && oldSelf.immutable) || (has(self.ignore) == has(oldSelf.ignore) && (!has(self.ignore) || self.ignore == oldSelf.ignore))",message="ignore cannot change while immutable is true; create another BundleSource instead"
// +kubebuilder:validation:XValidation:rule="!self.sources.exists(s, has(s.upload)) || (self.sources.size() == 1 && (!has(self.sources[0].destination) || self.sources[0].destination == \"\") && (!has(self.ignore) || self.ignore == \"\"))",message="an upload is the whole artifact: it must be the only source, without a destination, and without ignore (leave files out when uploading)"
type BundleSourceSpec struct {
	// Interval at which references that can move (a tag, a range, a branch, a URL without digest) are resolved again,
	// and ConfigMaps are read again. References that cannot move (a digest, a commit) are not polled. Up to a tenth is
	// subtracted, so that sources spread out.
	// +optional
	// +kubebuilder:default="10m"
	Interval Duration `json:"interval,omitzero"`

	// Timeout bounds one whole fetch of all sources: resolving, downloading, unpacking and storing.
	// +optional
	// +kubebuilder:default="60s"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^([0-9]+([.][0-9]+)?(ms|s|m|h))+$') || duration(self) <= duration('1h')",message="must be at most 1h"
	Timeout Duration `json:"timeout,omitzero"`

	// Suspend stops resolving and fetching. What is published stays published.
	// +optional
	Suspend bool `json:"suspend,omitempty"`

	// Immutable makes this source like an immutable ConfigMap: sources and ignore can no longer change, and what a
	// moving reference resolved to first is kept for good. It cannot be unset.
	// +optional
	Immutable bool `json:"immutable,omitempty"`

	// Ignore lists files to leave out of the artifact, in the syntax of .gitignore,
	// as seen from the root of the artifact. Without it nothing is left out but the
	// folders of version control systems (.git, .hg, .svn, .bzr, CVS).
	// +optional
	// +kubebuilder:validation:MaxLength=16384
	Ignore string `json:"ignore,omitempty"`

	// ServiceAccountName is a ServiceAccount of this namespace. Its imagePullSecrets are used for the registries of
	// images, beside the Secret that an image names: the first 20 of them. Nothing else of it is used.
	// +optional
	ServiceAccountName ServiceAccountName `json:"serviceAccountName,omitempty"`

	// ExternalArtifact keeps an ExternalArtifact of the same name, by which Flux (2.7 or
	// later, with the feature gate ExternalArtifact) consumes what is published. An
	// existing one with another owner is not changed, and a condition reports it.
	// +optional
	ExternalArtifact bool `json:"externalArtifact,omitempty"`

	// Sources are composed into one tree, each into its own destination folder.
	// With more than one, no destination may lie within another.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:XValidation:rule="self.size() == 1 || self.all(a, has(a.destination) && a.destination != '' && self.exists_one(b, has(b.destination) && b.destination == a.destination) && !self.exists(b, has(b.destination) && b.destination.startsWith(a.destination + '/')))",message="with several sources each needs a destination of its own, and none may lie within another"
	// +kubebuilder:validation:XValidation:rule="[(self.map(s, s.?image.?secretRef.?name.orValue('')) + self.map(s, s.?image.?certSecretRef.?name.orValue('')) + self.map(s, s.?image.?proxySecretRef.?name.orValue('')) + self.map(s, s.?image.?verify.?secretRef.?name.orValue('')) + self.map(s, s.?image.?verify.?trustedRootSecretRef.?name.orValue('')) + self.map(s, s.?git.?secretRef.?name.orValue('')) + self.map(s, s.?git.?proxySecretRef.?name.orValue('')) + self.map(s, s.?git.?verify.?secretRef.?name.orValue('')) + self.map(s, s.?http.?secretRef.?name.orValue('')) + self.map(s, s.?http.?certSecretRef.?name.orValue('')) + self.map(s, s.?http.?proxySecretRef.?name.orValue('')) + self.map(s, s.?http.?verify.?secretRef.?name.orValue('')) + self.map(s, s.?http.?verify.?trustedRootSecretRef.?name.orValue('')) + self.map(s, s.?helm.?secretRef.?name.orValue('')) + self.map(s, s.?helm.?certSecretRef.?name.orValue('')) + self.map(s, s.?helm.?proxySecretRef.?name.orValue(''))).filter(n, n != '')].map(l, l.filter(n, n != l[0])).map(l, l.filter(n, n != l[0])).map(l, l.filter(n, n != l[0])).map(l, l.filter(n, n != l[0])).map(l, l.filter(n, n != l[0])).map(l, l.filter(n, n != l[0])).map(l, l.filter(n, n != l[0])).map(l, l.filter(n, n != l[0])).map(l, l.filter(n, n != l[0])).map(l, l.filter(n, n != l[0])).map(l, l.filter(n, n != l[0])).map(l, l.filter(n, n != l[0])).map(l, l.filter(n, n != l[0])).map(l, l.filter(n, n != l[0])).map(l, l.filter(n, n != l[0])).map(l, l.filter(n, n != l[0])).map(l, l.filter(n, n != l[0])).map(l, l.filter(n, n != l[0])).map(l, l.filter(n, n != l[0])).map(l, l.filter(n, n != l[0])).all(l, l.size() == 0)",message="the sources may name at most 20 distinct Secrets: use one Secret for several sources, or divide the sources among several BundleSources"
	Sources []Source `json:"sources"`
}

// Source is one place from which files come: exactly one of image, git, http, helm, configMap and upload.
//
// +kubebuilder:validation:ExactlyOneOf=image;git;http;helm;configMap;upload
type Source struct {
	// Destination is the folder of the artifact that receives the files of this
	// source; without it, or when it is empty, its root.
	// +optional
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:XValidation:rule="self.matches('^([A-Za-z0-9_]([A-Za-z0-9._-]*[A-Za-z0-9_-])?(/[A-Za-z0-9_]([A-Za-z0-9._-]*[A-Za-z0-9_-])?)*)?$')",message="must be a relative folder such as base/manifests: letters, digits, '.', '_' and '-', each part beginning with a letter, digit or '_' and not ending in '.'"
	Destination string `json:"destination,omitempty"`

	// Image takes the files of a container image or OCI artifact.
	// +optional
	Image *ImageSource `json:"image,omitempty"`

	// Git takes the files of a commit in a Git repository.
	// +optional
	Git *GitSource `json:"git,omitempty"`

	// HTTP takes the files of an archive.
	// +optional
	HTTP *HTTPSource `json:"http,omitempty"`

	// Helm takes the files of a chart in a Helm repository, which has an index. Charts
	// in a registry (oci://) are taken with image.
	// +optional
	Helm *HelmSource `json:"helm,omitempty"`

	// ConfigMap takes the keys of data and binaryData of a ConfigMap in this namespace as
	// files: for small bundles kept in the cluster itself. It is read at each interval.
	// +optional
	ConfigMap *LocalReference `json:"configMap,omitempty"`

	// Upload takes what was uploaded to the source controller. It has to be the
	// only source, without a destination, and spec.ignore has to be empty.
	// +optional
	Upload *UploadSource `json:"upload,omitempty"`
}

// ImageSource is a container image or OCI artifact. All its layers are flattened into one tree.
//
// +kubebuilder:validation:XValidation:rule="!has(self.version) || (!self.reference.contains('@') && !self.reference.matches(':[^/]*$'))",message="version chooses the tag: remove tag and digest from reference"
// +kubebuilder:validation:XValidation:rule="!has(self.provider) || self.provider == 'generic' || !(has(self.certSecretRef) || (has(self.insecure) && self.insecure))",message="a cloud's login goes to that cloud only: remove certSecretRef and insecure, or the provider"
type ImageSource struct {
	// Reference is the image, with a tag or a digest: quay.io/org/bundle:v1.2.3 or quay.io/org/bundle@sha256:...
	// Without either, the tag is latest, unless version chooses it. Without a host the registry is Docker Hub. A tag
	// is resolved to a digest once an interval, and that digest is what is fetched.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="!self.contains('://')",message="must be an image reference without a scheme, such as quay.io/org/bundle:v1.2.3"
	// +kubebuilder:validation:XValidation:rule="self.contains('://') || self.matches('^[][A-Za-z0-9._:/@-]*$')",message="must be an image reference such as quay.io/org/bundle:v1.2.3, without blanks, a query or other signs"
	Reference string `json:"reference"`

	// Platform chooses the child of a multi-platform index, as os/arch or os/arch/variant. It is the same on every
	// node, since bundles hold manifests. Without it linux/amd64 is taken, or the only image of the index.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]+/[a-z0-9_]+(/[a-z0-9]+)?$')",message="must be os/arch or os/arch/variant, such as linux/amd64"
	Platform string `json:"platform,omitempty"`

	// Version is a range such as ">=1.2 <2"; the newest tag within it is taken, and looked for again every interval.
	// Only full versions such as 1.2.3 and v1.2.3 count, and prereleases only where the range names one. The tag
	// 1.2.3_build.7 is the version 1.2.3+build.7; a version that is written with build metadata means this build only.
	// A repository may have 100,000 tags, of which 20,000 are versions.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	Version string `json:"version,omitempty"`

	// Insecure reaches the registry over plain HTTP. It takes effect only for
	// hosts that the source controller's --insecure-hosts flag lists.
	// +optional
	Insecure bool `json:"insecure,omitempty"`

	// Provider logs in to the registry of a cloud (aws, azure, gcp) with the source controller's own identity there,
	// which the controller's flag --cloud-logins has to permit. The login is sent to registries of that cloud only. A
	// proxy is used for the registry and not for the login. With generic, or without a provider, Secrets hold the
	// login.
	// +optional
	// +kubebuilder:validation:Enum=generic;aws;azure;gcp
	Provider string `json:"provider,omitempty"`

	// SecretRef names a Secret of the type kubernetes.io/dockerconfigjson with the login to the registry. It takes
	// precedence over the pull secrets of the source's serviceAccountName.
	// +optional
	SecretRef *LocalReference `json:"secretRef,omitempty"`

	// CertSecretRef names a Secret with ca.crt, authorities that are trusted beside the system's, or tls.crt and
	// tls.key, a certificate that is shown to the registry, or both.
	// +optional
	CertSecretRef *LocalReference `json:"certSecretRef,omitempty"`

	// ProxySecretRef names a Secret with the address of a proxy (http://host:port), and username and password where
	// the proxy wants them. Environment variables are ignored.
	// +optional
	ProxySecretRef *LocalReference `json:"proxySecretRef,omitempty"`

	// Verify demands a signature of the image: of exactly what ref resolves to, an
	// image or an index. Without one that is accepted nothing is fetched.
	// +optional
	Verify *ImageVerification `json:"verify,omitempty"`
}

// ImageVerification says which signatures of an image are accepted.
//
// +kubebuilder:validation:XValidation:rule="self.provider != 'cosign' || has(self.secretRef) != has(self.matchOIDCIdentity)",message="cosign needs either secretRef, a Secret with public keys, or matchOIDCIdentity"
// +kubebuilder:validation:XValidation:rule="!has(self.matchOIDCIdentity) || has(self.trustedRootSecretRef)",message="matchOIDCIdentity needs trustedRootSecretRef, a Secret with trusted_root.json"
// +kubebuilder:validation:XValidation:rule="self.provider != 'notation' || (has(self.secretRef) && !has(self.matchOIDCIdentity) && !has(self.trustedRootSecretRef))",message="notation needs secretRef, a Secret with trustpolicy.json and certificates, and nothing else"
// +kubebuilder:validation:XValidation:rule="!has(self.transparencyLog) || (has(self.secretRef) && has(self.trustedRootSecretRef))",message="transparencyLog is for keys (secretRef) beside a trusted root (trustedRootSecretRef)"
type ImageVerification struct {
	// Provider is the tool that signs: cosign (Sigstore) or notation (Notary Project).
	// +required
	// +kubebuilder:validation:Enum=cosign;notation
	Provider string `json:"provider"`

	// SecretRef names a Secret. For cosign: public keys, each in an entry with a name
	// that ends in .pub; a signature by one of them suffices. For notation:
	// trustpolicy.json, and certificates in entries with names that end in .crt or .pem.
	// +optional
	SecretRef *LocalReference `json:"secretRef,omitempty"`

	// MatchOIDCIdentity accepts certificates of Sigstore's Fulcio for one of these
	// identities, instead of keys. Each is tried alone.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	MatchOIDCIdentity []OIDCIdentity `json:"matchOIDCIdentity,omitempty"`

	// TrustedRootSecretRef names a Secret with trusted_root.json, the authorities and logs of Sigstore that are
	// trusted. With keys it is optional: without it no entry in a log is asked for.
	// +optional
	TrustedRootSecretRef *LocalReference `json:"trustedRootSecretRef,omitempty"`

	// TransparencyLog says whether a signature by a key has to be in a log of the trusted root: Required, the default,
	// or Ignore. It is for keys beside a trusted root: without one there is no log to look in, and identities always
	// need one. With Required every accepted signature is public, also one by a stolen key.
	// +optional
	// +kubebuilder:validation:Enum=Required;Ignore
	TransparencyLog string `json:"transparencyLog,omitempty"`
}

// OIDCIdentity is the identity that a certificate was issued for. Issuer and subject both have to match. Of each, give the exact value,
// or a regular expression (RE2) that is anchored: it begins with ^ and ends with $, around all of it.
//
// +kubebuilder:validation:XValidation:rule="has(self.issuer) != has(self.issuerRegExp)",message="give either issuer or issuerRegExp"
// +kubebuilder:validation:XValidation:rule="has(self.subject) != has(self.subjectRegExp)",message="give either subject or subjectRegExp"
type OIDCIdentity struct {
	// Issuer of the identity, such as https://token.actions.githubusercontent.com, exactly.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Issuer string `json:"issuer,omitempty"`

	// IssuerRegExp matches the issuer, such as ^https://(eu|us)[.]login[.]example[.]org$, in the syntax of RE2. A
	// pattern has at most 2,048 instructions when compiled, and all patterns of a source 32,768.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="self.startsWith('^') && self.endsWith('$') && !self.endsWith('\\\\$')",message="must be anchored: begin with ^ and end with $, or names that only contain what is meant are accepted"
	IssuerRegExp string `json:"issuerRegExp,omitempty"`

	// Subject that the issuer vouches for, such as a workflow or an e-mail address, exactly.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Subject string `json:"subject,omitempty"`

	// SubjectRegExp matches the subject, such as
	// ^https://github[.]com/example/gadget/[.]github/workflows/release[.]yaml@refs/tags/v[0-9.]+$.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="self.startsWith('^') && self.endsWith('$') && !self.endsWith('\\\\$')",message="must be anchored: begin with ^ and end with $, or names that only contain what is meant are accepted"
	SubjectRegExp string `json:"subjectRegExp,omitempty"`
}

// GitSource is a commit in a Git repository that is reached over HTTPS or SSH.
//
// +kubebuilder:validation:XValidation:rule="!self.url.startsWith('ssh:') || has(self.secretRef)",message="an ssh:// repository needs secretRef, a Secret with identity and known_hosts"
// +kubebuilder:validation:XValidation:rule="!has(self.provider) || self.provider != 'github' || (has(self.secretRef) && self.url.startsWith('https:'))",message="provider github needs an https:// repository and secretRef, a Secret with the GitHub App"
type GitSource struct {
	// URL of the repository: https://host/path or ssh://user@host/path. Plain http is accepted only for hosts that the
	// source controller's --insecure-hosts flag lists.
	// +required
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:XValidation:rule="self.matches('^(https?://[^[:space:][:cntrl:]/?#@-][^[:space:][:cntrl:]/?#@]*(/[^[:space:][:cntrl:]?#]*)?|ssh://([A-Za-z0-9._][A-Za-z0-9._@+-]*@)?[[A-Za-z0-9_][]A-Za-z0-9._:-]*/[^[:space:][:cntrl:]?#]+)$')",message="must be a URL that begins with https:// (or http://) and holds neither user name, password nor query, or ssh://user@host/path"
	// +kubebuilder:validation:XValidation:rule="!self.matches('%([01][0-9A-Fa-f]|7[Ff])')",message="must not hold control characters, however they are written"
	URL string `json:"url"`

	// Ref says which commit to take; the head of the default branch if it is left out.
	// +optional
	Ref *GitRef `json:"ref,omitempty"`

	// Path is the folder of the repository to take; all of it if empty.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="!self.startsWith('/') && !self.split('/').exists(p, p == '..')",message="must be a relative path without .."
	Path string `json:"path,omitempty"`

	// RecurseSubmodules takes the files of submodules as well, each at the commit that the repository names: at most
	// 50 submodules in three levels. They have to lie on the same server (scheme, user, host and port), and the same
	// login is used. Without it they are left out.
	// +optional
	RecurseSubmodules bool `json:"recurseSubmodules,omitempty"`

	// Provider github logs in as a GitHub App, which secretRef describes. With generic,
	// or without a provider, secretRef holds the login itself.
	// +optional
	// +kubebuilder:validation:Enum=generic;github
	Provider string `json:"provider,omitempty"`

	// SecretRef names a Secret that logs in to the server of the repository, and to no other. For https: username and
	// password, or bearerToken, and beside them ca.crt, tls.crt and tls.key as needed. For ssh: identity (a private
	// key), its password where it has one, and known_hosts, which is required. For a GitHub App: githubAppID,
	// githubAppPrivateKey, githubAppInstallationID or githubAppInstallationOwner, and githubAppBaseURL for an own
	// server.
	// +optional
	SecretRef *LocalReference `json:"secretRef,omitempty"`

	// ProxySecretRef names a Secret with the address of a proxy (http://host:port), and username and password where
	// the proxy wants them. Environment variables are ignored. For ssh the proxy itself has to be reached over http.
	// +optional
	ProxySecretRef *LocalReference `json:"proxySecretRef,omitempty"`

	// Verify demands a signature, by PGP or SSH, of what ref resolves to. Without one
	// that is accepted nothing is written.
	// +optional
	Verify *GitVerification `json:"verify,omitempty"`
}

// GitVerification says what has to be signed, and by whom.
type GitVerification struct {
	// Mode is what has to be signed: HEAD, the default: the commit; Tag, the annotated tag that ref names; or
	// TagAndHEAD, both. Tag and TagAndHEAD need a ref with a tag, a range, or a name that begins with refs/tags/.
	// +optional
	// +kubebuilder:validation:Enum=HEAD;Tag;TagAndHEAD
	Mode string `json:"mode,omitempty"`

	// SecretRef names a Secret with keys as entries: PGP public keys, SSH public keys,
	// or allowed signers of SSH. A signature by one of them suffices.
	// +required
	SecretRef LocalReference `json:"secretRef"`
}

// GitRef chooses a commit: at most one of branch, tag, version, name and commit.
//
// +kubebuilder:validation:AtMostOneOf=branch;tag;version;name;commit
type GitRef struct {
	// Branch to take the head of, resolved again every interval.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:XValidation:rule="self.size() == 0 || (self.matches('^[]!-)+-9;->@-Z_-}[:^ascii:]]+$') && !self.matches('(^|/)([.]|/|$)|[.]lock(/|$)|[.][.]|[.]$|@[{]|^(refs/(heads|tags)/)?-'))",message="must be a name that git check-ref-format takes, not beginning with -"
	Branch string `json:"branch,omitempty"`

	// Tag to take the commit of, resolved again every interval.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:XValidation:rule="self.size() == 0 || (self.matches('^[]!-)+-9;->@-Z_-}[:^ascii:]]+$') && !self.matches('(^|/)([.]|/|$)|[.]lock(/|$)|[.][.]|[.]$|@[{]|^(refs/(heads|tags)/)?-'))",message="must be a name that git check-ref-format takes, not beginning with -"
	Tag string `json:"tag,omitempty"`

	// Version is a range such as ">=1.2 <2"; the newest tag within it is taken. Short versions
	// such as v1.2 count as well. A repository may have 20,000 versions.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	Version string `json:"version,omitempty"`

	// Name is the full name of a reference, such as refs/pull/12/head, resolved again every interval.
	// +optional
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:XValidation:rule="self.startsWith('refs/')",message="must be a full name that begins with refs/"
	// +kubebuilder:validation:XValidation:rule="self.size() == 0 || (self.matches('^[]!-)+-9;->@-Z_-}[:^ascii:]]+$') && !self.matches('(^|/)([.]|/|$)|[.]lock(/|$)|[.][.]|[.]$|@[{]|^(refs/(heads|tags)/)?-'))",message="must be a name that git check-ref-format takes, not beginning with -"
	Name string `json:"name,omitempty"`

	// Commit is the full hash of a commit. It cannot move, so it is not polled. Repositories
	// with SHA-256 hashes are not supported.
	// +optional
	// +kubebuilder:validation:MaxLength=40
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-f0-9]{40}$')",message="must be the full hash of a commit: 40 lower-case hexadecimal digits"
	Commit string `json:"commit,omitempty"`
}

// HTTPSource is an archive (tar, tar.gz, tar.zst or zip) at a URL.
type HTTPSource struct {
	// URL of the archive. Its first bytes tell the format; where the name ends in that of another format, it is
	// refused. Plain http is accepted only for hosts that the source controller's --insecure-hosts flag lists. Signed
	// URLs, which are valid for one object and for a limited time, are accepted.
	// +required
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:XValidation:rule="self.matches('^https?://[^[:space:]/?#@]+([/?#][^[:space:]]*)?$')",message="must be a URL that begins with https:// (or http://) and holds neither user name nor password"
	// +kubebuilder:validation:XValidation:rule="!self.matches('(?i)[?&;](((access|api|auth|bearer|deploy|id|job|oauth|private|refresh)[_-]?)?token|bearer|passwd|password|passphrase|(client[_-]?)?secret|api[_-]?key|authorization)=')",message="must not have a credential such as token= in its query, where every reader of this object sees it: put it into a Secret and name that in secretRef"
	URL string `json:"url"`

	// Digest that the archive must have: sha256:, sha384: or sha512: and the hash
	// in hexadecimal. With it the URL is not polled.
	// +optional
	// +kubebuilder:validation:MaxLength=135
	// +kubebuilder:validation:XValidation:rule="self.matches('^(sha256:[A-Fa-f0-9]{64}|sha384:[A-Fa-f0-9]{96}|sha512:[A-Fa-f0-9]{128})$')",message="must be sha256:, sha384: or sha512: and the whole hash in hexadecimal"
	Digest string `json:"digest,omitempty"`

	// SecretRef names a Secret that logs in to the server of the URL, and to no
	// other: username and password, or bearerToken.
	// +optional
	SecretRef *LocalReference `json:"secretRef,omitempty"`

	// CertSecretRef names a Secret with ca.crt, authorities that are trusted beside the system's, or tls.crt and
	// tls.key, a certificate that is shown to the server of the URL, or both.
	// +optional
	CertSecretRef *LocalReference `json:"certSecretRef,omitempty"`

	// ProxySecretRef names a Secret with the address of a proxy (http://host:port), and username and password where
	// the proxy wants them. Environment variables are ignored.
	// +optional
	ProxySecretRef *LocalReference `json:"proxySecretRef,omitempty"`

	// Verify demands a detached signature of the archive, made with cosign sign-blob.
	// Without one that is accepted the archive is not used.
	// +optional
	Verify *ArchiveVerification `json:"verify,omitempty"`
}

// HelmSource is a chart in a Helm repository: in one that helm repo add takes, with an index.yaml. Its files are in a
// folder with the name of the chart, as in the chart's archive. Provenance files (.prov) are not verified.
//
// +kubebuilder:validation:XValidation:rule="!has(self.digest) || (has(self.version) && self.version.matches('^v?[0-9]+([.][0-9]+){0,2}(-[0-9A-Za-z.-]+)?([+][0-9A-Za-z.-]+)?$'))",message="a digest is that of one archive: set version to an exact version such as 1.2.3, or remove the digest"
// +kubebuilder:validation:XValidation:rule="!has(self.passCredentials) || !self.passCredentials || has(self.secretRef)",message="passCredentials has no effect without secretRef"
type HelmSource struct {
	// URL of the repository, without index.yaml. Plain http is accepted
	// only for hosts that the source controller's --insecure-hosts flag lists.
	// +required
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:XValidation:rule="!self.startsWith('oci://')",message="a registry has no index: use image with reference: HOST/PATH/CHART, and version for a range, instead of helm"
	// +kubebuilder:validation:XValidation:rule="self.startsWith('oci://') || self.matches('^https?://[^[:space:]/?#@]+([/?][^[:space:]#]*)?$')",message="must be a URL that begins with https:// (or http://) and holds neither user name nor password"
	// +kubebuilder:validation:XValidation:rule="!self.matches('(?i)[?&;](((access|api|auth|bearer|deploy|id|job|oauth|private|refresh)[_-]?)?token|bearer|passwd|password|passphrase|(client[_-]?)?secret|api[_-]?key|authorization)=')",message="must not have a credential such as token= in its query, where every reader of this object sees it: put it into a Secret and name that in secretRef"
	URL string `json:"url"`

	// Chart is the name of the chart in the index.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=250
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9][A-Za-z0-9._-]*$')",message="must be the name of a chart such as podinfo: letters, digits, '.', '_' and '-'"
	Chart string `json:"chart"`

	// Version is an exact version such as 1.2.3, or a range such as ">=1.2 <2", of which the newest version is taken.
	// Without it the newest version of the chart is taken. Prereleases count only where the range names one. The index
	// is looked at again every interval: a version that was replaced in it is fetched again. A chart may have 20,000
	// versions.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	Version string `json:"version,omitempty"`

	// Digest that the chart's archive must have, whatever the index says: sha256:, sha384: or sha512: and the hash in
	// hexadecimal. It needs an exact version, and with it the repository is not polled.
	// +optional
	// +kubebuilder:validation:MaxLength=135
	// +kubebuilder:validation:XValidation:rule="self.matches('^(sha256:[A-Fa-f0-9]{64}|sha384:[A-Fa-f0-9]{96}|sha512:[A-Fa-f0-9]{128})$')",message="must be sha256:, sha384: or sha512: and the whole hash in hexadecimal"
	Digest string `json:"digest,omitempty"`

	// SecretRef names a Secret that logs in to the server of the repository, and to no
	// other unless passCredentials is set: username and password, or bearerToken.
	// +optional
	SecretRef *LocalReference `json:"secretRef,omitempty"`

	// PassCredentials sends the login to the server of the chart's archive as well, if the index names another one
	// than that of the repository. The author of the index decides then which server gets it.
	// +optional
	PassCredentials bool `json:"passCredentials,omitempty"`

	// CertSecretRef names a Secret with ca.crt, authorities that are trusted beside the system's, or tls.crt and
	// tls.key, a certificate that is shown to the server of the repository, or both.
	// +optional
	CertSecretRef *LocalReference `json:"certSecretRef,omitempty"`

	// ProxySecretRef names a Secret with the address of a proxy (http://host:port), and username and password where
	// the proxy wants them. Environment variables are ignored.
	// +optional
	ProxySecretRef *LocalReference `json:"proxySecretRef,omitempty"`
}

// ArchiveVerification says where the signature of an archive is, and which signatures are accepted.
//
// +kubebuilder:validation:XValidation:rule="has(self.secretRef) != has(self.matchOIDCIdentity)",message="give either secretRef, a Secret with public keys, or matchOIDCIdentity"
// +kubebuilder:validation:XValidation:rule="!has(self.matchOIDCIdentity) || has(self.trustedRootSecretRef)",message="matchOIDCIdentity needs trustedRootSecretRef, a Secret with trusted_root.json"
// +kubebuilder:validation:XValidation:rule="!has(self.transparencyLog) || (has(self.secretRef) && has(self.trustedRootSecretRef))",message="transparencyLog is for keys (secretRef) beside a trusted root (trustedRootSecretRef)"
type ArchiveVerification struct {
	// Provider is the tool that signs: cosign, the default.
	// +optional
	// +kubebuilder:validation:Enum=cosign
	Provider string `json:"provider,omitempty"`

	// SignatureURL is where the signature lies: a Sigstore bundle, or the signature
	// alone in base64. The login goes there too where it is the server of url.
	// +required
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:XValidation:rule="self.matches('^https?://[^[:space:]/?#@]+([/?#][^[:space:]]*)?$')",message="must be a URL that begins with https:// (or http://) and holds neither user name nor password"
	// +kubebuilder:validation:XValidation:rule="!self.matches('(?i)[?&;](((access|api|auth|bearer|deploy|id|job|oauth|private|refresh)[_-]?)?token|bearer|passwd|password|passphrase|(client[_-]?)?secret|api[_-]?key|authorization)=')",message="must not have a credential such as token= in its query, where every reader of this object sees it: put it into a Secret and name that in secretRef"
	SignatureURL string `json:"signatureURL"`

	// SecretRef names a Secret with public keys, each in an entry with a name that ends
	// in .pub. A signature by one of them suffices.
	// +optional
	SecretRef *LocalReference `json:"secretRef,omitempty"`

	// MatchOIDCIdentity accepts certificates of Sigstore's Fulcio for one of these
	// identities, instead of keys. Each is tried alone.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	MatchOIDCIdentity []OIDCIdentity `json:"matchOIDCIdentity,omitempty"`

	// TrustedRootSecretRef names a Secret with trusted_root.json, the authorities and
	// logs of Sigstore that are trusted.
	// +optional
	TrustedRootSecretRef *LocalReference `json:"trustedRootSecretRef,omitempty"`

	// TransparencyLog says whether a signature by a key has to be in a log of the trusted root: Required, the default,
	// or Ignore. It is for keys beside a trusted root: without one there is no log to look in, and identities always
	// need one. With Required every accepted signature is public, also one by a stolen key.
	// +optional
	// +kubebuilder:validation:Enum=Required;Ignore
	TransparencyLog string `json:"transparencyLog,omitempty"`
}

// BundleSourceStatus is what the source controller last saw and published.
type BundleSourceStatus struct {
	// ObservedGeneration is the generation of the spec that this status is about; -1 before the first reconcile.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Conditions follow kstatus: Ready, Reconciling, Stalled, and beside them
	// ArtifactInStorage, SourceVerified, FetchFailed and StorageOperationFailed.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// Artifact is the newest published artifact. Its revision ends in the digest
	// of the canonical uncompressed tar and changes whenever the content changes.
	// +optional
	Artifact *meta.Artifact `json:"artifact,omitempty"`

	// OriginRevision names what Artifact was made from as the upstream does: main@sha1:<commit>,
	// v1.2.3@sha256:<manifest digest>, or the name and digest of an archive, a ConfigMap or an upload. Those of
	// several sources are joined by commas, in their order; beyond four, the others are counted. It may change while
	// the revision of Artifact does not, as by a commit to other files. Then nothing is installed.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	OriginRevision string `json:"originRevision,omitempty"`

	// Resolved says, for each source, what its reference resolved to and who signed that.
	// +optional
	// +listType=map
	// +listMapKey=destination
	Resolved []ResolvedSource `json:"resolved,omitempty"`

	// SourcesDigest identifies the sources of the spec that Artifact was made
	// from, so that a change of the spec is told from a change upstream.
	// +optional
	SourcesDigest string `json:"sourcesDigest,omitempty"`

	// Warnings name links of the upstream that look like manifests, files of charts or their
	// folders: links are not followed, so that the artifact lacks them; at most ten, and a line
	// about further ones. The warnings of Resolved follow.
	// +optional
	// +listType=atomic
	Warnings []string `json:"warnings,omitempty"`

	// ExternalArtifact is the name of the ExternalArtifact that shows Artifact to Flux; empty where none is kept.
	// +optional
	ExternalArtifact string `json:"externalArtifact,omitempty"`

	// LastHandledReconcileAt is the value of the annotation reconcile.fluxcd.io/requestedAt that was handled last.
	// +optional
	LastHandledReconcileAt string `json:"lastHandledReconcileAt,omitempty"`
}

// ResolvedSource is what one source's reference resolved to.
type ResolvedSource struct {
	// Destination of the source.
	// +optional
	// +kubebuilder:default=""
	Destination string `json:"destination"`

	// Reference in words: a tag, a branch, the version of a chart; empty when the spec names a digest.
	// +optional
	Reference string `json:"reference,omitempty"`

	// Digest of what was fetched: of an image's manifest, a commit (sha1:...), an
	// archive, a ConfigMap's content, or an upload.
	// +optional
	Digest string `json:"digest,omitempty"`

	// Via is the mirror of a BundleImagePolicy from which an image was fetched; empty where that was
	// the registry in its name.
	// +optional
	Via string `json:"via,omitempty"`

	// Validator is how an HTTP server names this version of the archive, or of the
	// index of a Helm repository (its ETag or Last-Modified), by which the next poll
	// learns that nothing changed. It is empty while other content may have the same one.
	// +optional
	Validator string `json:"validator,omitempty"`

	// VerifiedBy is the signer of the accepted signature; empty where none is demanded.
	// +optional
	VerifiedBy string `json:"verifiedBy,omitempty"`

	// Trust identifies the keys and policies by which the signature was accepted, so
	// that it is verified again when they change.
	// +optional
	Trust string `json:"trust,omitempty"`

	// Warning says why this may not be the version that was wanted: entries of the index of a
	// Helm repository are left out because they are invalid.
	// +optional
	Warning string `json:"warning,omitempty"`

	// Transport identifies the certificate authorities, the host keys and the proxy in Secrets by which this was fetched. It is
	// empty without such Secrets, and where a digest or a signature identifies the content. In a namespace that requires
	// approval, a new revision that was fetched by others needs an approval.
	// +optional
	Transport string `json:"transport,omitempty"`
}

// BundleSource says where a bundle comes from and publishes its content as an immutable artifact.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories=satchel,shortName=bsrc
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:printcolumn:name="Origin",type=string,JSONPath=`.status.originRevision`,priority=1
// +kubebuilder:printcolumn:name="Revision",type=string,JSONPath=`.status.artifact.revision`,priority=1
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 63",message="the name must have at most 63 characters"
type BundleSource struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec says where the bundle comes from.
	// +required
	Spec BundleSourceSpec `json:"spec"`

	// Status is written by the source controller.
	// +optional
	// +kubebuilder:default={"observedGeneration":-1}
	Status BundleSourceStatus `json:"status,omitempty"`
}

// BundleSourceList is a list of BundleSources.
//
// +kubebuilder:object:root=true
type BundleSourceList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// Items of the list.
	Items []BundleSource `json:"items"`
}

// GetConditions returns the conditions of the status.
func (in *BundleSource) GetConditions() []metav1.Condition { return in.Status.Conditions }

// SetConditions replaces the conditions of the status.
func (in *BundleSource) SetConditions(conditions []metav1.Condition) {
	in.Status.Conditions = conditions
}
