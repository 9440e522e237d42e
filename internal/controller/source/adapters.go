// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	nethttp "net/http"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/controller/source/credentials"
	"github.com/satchel-dev/satchel/internal/fetch"
	"github.com/satchel-dev/satchel/internal/fetch/configmap"
	"github.com/satchel-dev/satchel/internal/fetch/git"
	"github.com/satchel-dev/satchel/internal/fetch/http"
	"github.com/satchel-dev/satchel/internal/fetch/image"
)

// fetcher builds the adapter of one source of the spec. The policy of the HTTP client
// decides which addresses it may reach, and whether over plain HTTP.
func (r *Reconciler) fetcher(ctx context.Context, s *state, source v1alpha1.Source) (fetch.Fetcher, error) {
	switch {
	case source.Image != nil:
		return r.imageFetcher(ctx, s, source.Image)
	case source.Git != nil:
		return r.gitFetcher(ctx, s, source.Git)
	case source.HTTP != nil:
		return r.httpFetcher(ctx, s, source.HTTP)
	case source.ConfigMap != nil:
		return configMapFetcher(ctx, s.secrets, source.ConfigMap.Name)
	case source.Upload != nil:
		return uploaded{source.Upload.Digest}, nil
	}
	return nil, fetch.Errorf(fetch.Refused, "the source at destination %q names none of image, git, http, configMap and upload: add exactly one", source.Destination)
}

func (r *Reconciler) gitFetcher(ctx context.Context, s *state, spec *v1alpha1.GitSource) (fetch.Fetcher, error) {
	ref := spec.Ref
	if ref == nil {
		ref = &v1alpha1.GitRef{}
	}
	o := git.Options{
		URL: spec.Repository, Branch: ref.Branch, Tag: ref.Tag, SemVer: ref.SemVer, Name: ref.Name, Commit: ref.Commit,
		Directory: spec.Directory, Submodules: spec.RecurseSubmodules, Client: r.http, Limits: r.Limits,
	}
	err := r.gitAccess(ctx, s, spec, &o)
	if err == nil {
		o.Verify, err = credentials.GitVerification(ctx, s.secrets, spec.Verify)
	}
	if err != nil {
		return nil, err
	}
	if o.Verify != nil {
		o.Verify.Observe = func(took time.Duration, err error) { r.Measures.observe(verifying, "git", took, err) }
	}
	return git.New(o)
}

// gitAccess adds the credentials in the Secrets of a repository: a login or key, and a
// client with certificates and a proxy.
func (r *Reconciler) gitAccess(ctx context.Context, s *state, spec *v1alpha1.GitSource, o *git.Options) error {
	certificates := spec.SecretRef
	if spec.SecretRef != nil {
		secret, err := s.secrets.Get(ctx, spec.SecretRef.Name)
		if err != nil {
			return err
		}
		if err := credentials.GitCredentials(secret, spec, o); err != nil {
			return err
		}
		if !credentials.HasCertificates(secret) {
			certificates = nil
		}
	}
	if o.App != nil {
		o.App.Tokens = r.tokens
	}
	if o.SSH != nil {
		through, err := credentials.Access(ctx, s.secrets, "", nil, spec.ProxySecretRef)
		o.Dial = r.Policy.Dialer(through)
		return err
	}
	parsed, err := fetch.ParseURL(spec.Repository)
	if err != nil {
		return fetch.Describe(err, "git repository")
	}
	o.Client, err = r.client(ctx, s, parsed.Host, certificates, spec.ProxySecretRef)
	return err
}

func (r *Reconciler) imageFetcher(ctx context.Context, s *state, spec *v1alpha1.ImageSource) (fetch.Fetcher, error) {
	host, err := image.Host(spec.Ref)
	if err != nil {
		return nil, err
	}
	o := image.Options{Ref: spec.Ref, SemVer: spec.SemVer, Platform: spec.Platform, Insecure: spec.Insecure, Limits: r.Limits}
	if o.Keychain, err = r.keychain(ctx, s, spec, host); err != nil {
		return nil, err
	}
	if o.Client, err = r.client(ctx, s, host, spec.CertSecretRef, spec.ProxySecretRef); err != nil {
		return nil, err
	}
	if o.Verify, err = credentials.ImageVerifier(ctx, s.secrets, spec.Verify, o.Client); err != nil {
		return nil, err
	}
	if o.Verify != nil {
		o.Verify = measuredImages{o.Verify, r.Measures}
	}
	return image.New(o)
}

// keychain finds the login to a registry: of the image's own Secret, of the pull
// secrets of the source's ServiceAccount, or the controller's own in a cloud.
func (r *Reconciler) keychain(ctx context.Context, s *state, spec *v1alpha1.ImageSource, host string) (image.Keychain, error) {
	var found []image.Keychain
	if spec.SecretRef != nil {
		secret, err := s.secrets.Get(ctx, spec.SecretRef.Name)
		if err != nil {
			return nil, err
		}
		own, err := credentials.DockerConfig(secret)
		if err != nil {
			return nil, err
		}
		found = append(found, own)
	}
	if account := s.object.Spec.ServiceAccountName; account != "" {
		pulling, err := s.secrets.PullSecrets(ctx, account)
		if err != nil {
			return nil, err
		}
		for _, secret := range pulling {
			next, err := credentials.DockerConfig(secret)
			if err != nil {
				return nil, err
			}
			found = append(found, next)
		}
	}
	if spec.Provider != "" && spec.Provider != genericProvider {
		next, err := r.cloudKeychain(spec, host)
		if err != nil {
			return nil, err
		}
		found = append(found, next)
	}
	if len(found) == 0 {
		return nil, nil
	}
	return image.Keychains(found...), nil
}

// cloudKeychain logs in as the controller itself, if that is permitted, and to the
// cloud only. A tenant's proxy cannot read the login: it is requested without the
// proxy, and sent to the registry over TLS with the system's CAs only.
func (r *Reconciler) cloudKeychain(spec *v1alpha1.ImageSource, host string) (image.Keychain, error) {
	if spec.CertSecretRef != nil || spec.Insecure {
		return nil, fetch.Errorf(fetch.Refused, "a cloud's login goes to that cloud only: remove certSecretRef and insecure, or the provider")
	}
	if r.CloudLogins == nil {
		return nil, fetch.Errorf(fetch.Refused, "provider %s would log in as the source controller itself, which its flag --cloud-logins does not permit: use a Secret, or ask the administrator of Satchel", spec.Provider)
	}
	return r.CloudLogins(spec.Provider, host)
}

// genericProvider is the provider without a cloud login.
const genericProvider = "generic"

func (r *Reconciler) httpFetcher(ctx context.Context, s *state, spec *v1alpha1.HTTPSource) (fetch.Fetcher, error) {
	parsed, err := fetch.ParseURL(spec.URL)
	if err != nil {
		return nil, fetch.Describe(err, "archive")
	}
	o := http.Options{URL: spec.URL, Digest: spec.Digest, Limits: r.Limits}
	if o.Login, err = credentials.Login(ctx, s.secrets, spec.SecretRef); err != nil {
		return nil, err
	}
	if o.Client, err = r.client(ctx, s, parsed.Host, spec.CertSecretRef, spec.ProxySecretRef); err != nil {
		return nil, err
	}
	if v := spec.Verify; v != nil {
		o.Signature = v.SignatureURL
		verify, err := credentials.ArchiveVerifier(ctx, s.secrets, v)
		if err != nil {
			return nil, err
		}
		o.Verify = measuredArchives{verify, r.Measures}
	}
	return http.New(o)
}

// client returns the client of a source: the shared one, or its own if the source has
// certificates or a proxy. Connections of its own end with the reconcile, so that none
// outlives the credentials that opened it.
func (r *Reconciler) client(ctx context.Context, s *state, server string, certificates, proxy *v1alpha1.LocalReference) (*nethttp.Client, error) {
	if certificates == nil && proxy == nil {
		return r.http, nil
	}
	a, err := credentials.Access(ctx, s.secrets, server, certificates, proxy)
	if err != nil {
		return nil, err
	}
	own := r.Policy.Client(r.Limits, a)
	s.atEnd = append(s.atEnd, own.CloseIdleConnections)
	return own, nil
}

func configMapFetcher(ctx context.Context, s *credentials.Secrets, name string) (fetch.Fetcher, error) {
	var object corev1.ConfigMap
	found, err := s.Load(ctx, "ConfigMap", name, &object)
	if err != nil {
		return nil, err
	}
	if !found {
		return nil, fetch.Errorf(fetch.NotFound, "configmap %s/%s does not exist: create it, or correct the name in the source", s.Namespace, name)
	}
	return configmap.New(configmap.Options{Name: s.Namespace + "/" + name, Data: object.Data, BinaryData: object.BinaryData})
}
