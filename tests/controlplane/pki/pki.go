// SPDX-License-Identifier: Apache-2.0

// Package pki makes the keys, certificates and kubeconfigs of a control plane.
package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// Certificates are valid for ten years, so that a kept directory can always be resumed.
const validFor = 10 * 365 * 24 * time.Hour

// AdminUser is a member of system:masters.
const AdminUser = "kubernetes-admin"

// firstServiceIP is the address of the Service kubernetes, in the range of Services.
const firstServiceIP = "198.18.0.1"

// The certificate authorities. etcd has its own, for a client certificate of the cluster must not open it.
const (
	ClusterCA    = "ca"
	EtcdCA       = "etcd-ca"
	FrontProxyCA = "front-proxy-ca"
)

// leaf describes one certificate.
type leaf struct {
	name   string // of the files
	ca     string
	user   string   // common name
	groups []string // organizations
	hosts  []string // names and addresses of a server
}

// leaves are all certificates of a control plane.
var leaves = []leaf{
	{name: "etcd", ca: EtcdCA, user: "etcd", hosts: []string{"localhost", "127.0.0.1"}},
	{name: "etcd-client", ca: EtcdCA, user: "kube-apiserver"},
	{name: "apiserver", ca: ClusterCA, user: "kube-apiserver", hosts: []string{
		"localhost", "127.0.0.1", "kubernetes", "kubernetes.default", "kubernetes.default.svc",
		"kubernetes.default.svc.cluster.local", firstServiceIP,
	}},
	{name: "component", ca: ClusterCA, user: "component", hosts: []string{"localhost", "127.0.0.1"}},
	{name: "front-proxy-client", ca: FrontProxyCA, user: "front-proxy-client"},
	{name: AdminUser, ca: ClusterCA, user: AdminUser, groups: []string{"system:masters"}},
	{name: "controller-manager", ca: ClusterCA, user: "system:kube-controller-manager"},
	{name: "scheduler", ca: ClusterCA, user: "system:kube-scheduler"},
	{name: "kwok", ca: ClusterCA, user: "system:kwok", groups: []string{"system:masters"}},
}

// ServiceAccountKey is the name of the key pair that signs tokens of ServiceAccounts.
const ServiceAccountKey = "sa"

// Dir is a folder of PEM files: NAME.crt and NAME.key.
type Dir string

// Cert is the file of a certificate.
func (p Dir) Cert(name string) string { return filepath.Join(string(p), name+".crt") }

// Key is the file of a private key.
func (p Dir) Key(name string) string { return filepath.Join(string(p), name+".key") }

// Create makes all keys and certificates, unless they are there already.
func (p Dir) Create() error {
	complete := filepath.Join(string(p), "complete")
	if _, err := os.Stat(complete); err == nil {
		return nil
	}
	if err := os.MkdirAll(string(p), 0o700); err != nil {
		return fmt.Errorf("creating the folder of certificates: %w", err)
	}
	authorities := map[string]*authority{}
	for _, name := range []string{ClusterCA, EtcdCA, FrontProxyCA} {
		made, err := p.createAuthority(name)
		if err != nil {
			return fmt.Errorf("creating the certificate authority %s: %w", name, err)
		}
		authorities[name] = made
	}
	for _, l := range leaves {
		if err := p.createLeaf(l, authorities[l.ca]); err != nil {
			return fmt.Errorf("creating the certificate %s: %w", l.name, err)
		}
	}
	if _, err := p.createKey(ServiceAccountKey); err != nil {
		return fmt.Errorf("creating the key of service account tokens: %w", err)
	}
	return os.WriteFile(complete, nil, 0o600)
}

// authority signs certificates.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func (p Dir) createAuthority(name string) (*authority, error) {
	key, err := p.createKey(name)
	if err != nil {
		return nil, err
	}
	template, err := newTemplate(name, nil)
	if err != nil {
		return nil, err
	}
	template.IsCA = true
	template.BasicConstraintsValid = true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = nil
	cert, err := p.sign(name, template, template, key, key)
	return &authority{cert: cert, key: key}, err
}

func (p Dir) createLeaf(l leaf, ca *authority) error {
	key, err := p.createKey(l.name)
	if err != nil {
		return err
	}
	template, err := newTemplate(l.user, l.groups)
	if err != nil {
		return err
	}
	for _, host := range l.hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
			continue
		}
		template.DNSNames = append(template.DNSNames, host)
	}
	_, err = p.sign(l.name, template, ca.cert, key, ca.key)
	return err
}

func newTemplate(user string, groups []string) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, err
	}
	now := time.Now()
	return &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: user, Organization: groups},
		NotBefore:    now.Add(-time.Hour),
		NotAfter:     now.Add(validFor),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}, nil
}

// sign writes the certificate file of the name.
func (p Dir) sign(name string, template, parent *x509.Certificate, key, signer *ecdsa.PrivateKey) (*x509.Certificate, error) {
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		return nil, err
	}
	if err := writePEM(p.Cert(name), "CERTIFICATE", der); err != nil {
		return nil, err
	}
	return x509.ParseCertificate(der)
}

// createKey writes the key file of the name.
func (p Dir) createKey(name string) (*ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, err
	}
	return key, writePEM(p.Key(name), "EC PRIVATE KEY", der)
}

func writePEM(path, kind string, der []byte) error {
	return os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600)
}

// Client returns the TLS configuration of a client with the named certificate, for servers with a
// certificate that the named authority signed.
func (p Dir) Client(name, ca string) (*tls.Config, error) {
	cert, err := tls.LoadX509KeyPair(p.Cert(name), p.Key(name))
	if err != nil {
		return nil, fmt.Errorf("loading the certificate %s: %w", name, err)
	}
	roots := x509.NewCertPool()
	data, err := os.ReadFile(p.Cert(ca))
	if err != nil {
		return nil, fmt.Errorf("loading the certificate authority %s: %w", ca, err)
	}
	if !roots.AppendCertsFromPEM(data) {
		return nil, errors.New("loading the certificate authority " + ca + ": no certificate in it")
	}
	return &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12}, nil
}
