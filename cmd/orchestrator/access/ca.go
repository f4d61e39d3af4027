package access

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/term"
	"orchestrator/wire"
)

// How long certificates are valid. Certificates of hubs never outlive their authority.
const (
	authorityYears = 10
	hubYears       = 2
)

func keyCACommand(a *cli.App) *cobra.Command {
	var add bool
	verb := &cobra.Command{
		Use:   "ca DIR HUB...",
		Short: "Make the certificates and the secret of hubs",
		Long: `Creates the certificates of hubs on several machines (see orchestrator help many-machines).
DIR gets a certificate authority of the team, and for each HUB a folder DIR/HUB with all
files for its machine. HUB is the name in peers, without the port. Further names and
addresses of the same machine follow after commas.

  ca.pem        the certificate of the authority
  hubs.key      the secret that all hubs share
  hub.pem       the certificate of this hub, for other hubs and for http
  hub-key.pem   its key

DIR/ca-key.pem is the key of the authority. Keep it, and don't copy it to any hub. --add
makes certificates for more hubs. Certificates of hubs are valid for 2 years, the authority
for 10. No file is ever overwritten.`,
		Example: `  orchestrator key ca keys h1 h2 h3
  orchestrator key ca keys --add h4,h4.example,10.0.0.4`,
		Args: cli.ArgCount(2, -1),
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
			if len(args) == 0 {
				return nil, cobra.ShellCompDirectiveFilterDirs
			}
			return nil, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, args []string) error {
			hubs, err := readHubs(args[1:])
			if err != nil {
				return err
			}
			m := &certifier{dir: a.Path(args[0]), shown: args[0], now: time.Now()}
			if err := m.make(hubs, add); err != nil {
				for _, path := range slices.Backward(m.made) {
					_ = os.Remove(path)
				}
				return err
			}
			return m.show(a, hubs, add)
		},
	}
	verb.Flags().BoolVar(&add, "add", false, "use the existing authority in DIR")
	return verb
}

// A namedHub is a hub with all its names and addresses. The first is the name of its folder.
type namedHub []string

// oneName is a name of a machine. A folder can have it, too.
var oneName = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?$`)

// readHubs reads the names of hubs.
func readHubs(args []string) (hubs []namedHub, err error) {
	seen := make(map[string]bool)
	for _, arg := range args {
		hub := namedHub(strings.Split(arg, ","))
		for _, name := range hub {
			if net.ParseIP(name) == nil && !oneName.MatchString(name) {
				return nil, cli.UsageError(fmt.Sprintf("%q is not the name or the address of a machine", name), "Write it like in peers, without the port: orchestrator key ca keys h1 h2 h3")
			}
			if seen[name] {
				return nil, cli.UsageError(fmt.Sprintf("%q is duplicated", name), "Name each machine once")
			}
			seen[name] = true
		}
		hubs = append(hubs, hub)
	}
	return hubs, nil
}

// A certifier makes certificates in a folder.
type certifier struct {
	dir, shown string // shown: as the caller has written it
	now        time.Time
	made       []string // files and folders

	authority *x509.Certificate
	signer    crypto.Signer
	secret    []byte // the text of hubs.key
}

// make makes the authority, or reads it, and then the folders of hubs.
func (m *certifier) make(hubs []namedHub, add bool) error {
	begin := m.newAuthority
	if add {
		begin = m.readAuthority
	}
	if err := begin(); err != nil {
		return err
	}
	for _, hub := range hubs {
		if err := m.certify(hub); err != nil {
			return err
		}
	}
	return nil
}

// newAuthority makes the authority and the secret of the hubs.
func (m *certifier) newAuthority() error {
	if _, err := os.Lstat(m.path("ca-key.pem")); err == nil {
		return &cli.Failure{
			Exit: cli.ExitConflict, Code: wire.CodeConflict, Message: m.shown + " has a certificate authority already", Because: []string{"Nothing was written."},
			Hint: "Use it for more hubs: orchestrator key ca " + term.Word(m.shown) + " --add HUB",
		}
	}
	if _, err := os.Lstat(m.dir); err != nil {
		if err := m.folder(""); err != nil {
			return err
		}
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	m.signer = key
	m.authority = &x509.Certificate{
		SerialNumber: serial(), Subject: pkix.Name{CommonName: "orchestrator hubs"}, NotBefore: m.now.Add(-time.Hour), NotAfter: m.now.AddDate(authorityYears, 0, 0),
		IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
	}
	secret := make([]byte, 32)
	_, _ = rand.Read(secret) // it never fails
	m.secret = append(hex.AppendEncode(nil, secret), '\n')
	text, err := m.sign(m.authority, key.Public())
	if err != nil {
		return err
	}
	if m.authority, err = x509.ParseCertificate(text); err != nil { // hubs need its key id
		return err
	}
	return errors.Join(m.writeKey("ca-key.pem", key), m.writeCertificate("ca.pem", text), m.write("hubs.key", m.secret, 0o600))
}

// readAuthority reads the authority that is in the folder.
func (m *certifier) readAuthority() error {
	pair, err := tls.LoadX509KeyPair(m.path("ca.pem"), m.path("ca-key.pem"))
	if err == nil {
		m.secret, err = os.ReadFile(m.path("hubs.key"))
	}
	if err != nil {
		return &cli.Failure{
			Exit: cli.ExitNo, Code: cli.CodeFailed, Message: "cannot use the certificate authority in " + m.shown, Because: []string{err.Error(), "Nothing was written."},
			Hint: "Name its folder, or create one: orchestrator key ca " + term.Word(m.shown) + " HUB",
		}
	}
	m.authority = pair.Leaf
	m.signer, _ = pair.PrivateKey.(crypto.Signer)
	if !m.authority.IsCA || m.signer == nil || m.now.After(m.authority.NotAfter) {
		return fmt.Errorf("the certificate authority in %s is invalid or has expired", m.shown)
	}
	return nil
}

// certify makes the folder of a hub.
func (m *certifier) certify(hub namedHub) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	c := &x509.Certificate{
		SerialNumber: serial(), Subject: pkix.Name{CommonName: hub[0]}, NotBefore: m.now.Add(-time.Hour), NotAfter: m.now.AddDate(hubYears, 0, 0),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	if c.NotAfter.After(m.authority.NotAfter) {
		c.NotAfter = m.authority.NotAfter
	}
	for _, name := range hub {
		if ip := net.ParseIP(name); ip != nil {
			c.IPAddresses = append(c.IPAddresses, ip)
		} else {
			c.DNSNames = append(c.DNSNames, name)
		}
	}
	text, err := m.sign(c, key.Public())
	if err != nil {
		return err
	}
	if err := m.folder(hub[0]); err != nil {
		return err
	}
	in := func(name string) string { return filepath.Join(hub[0], name) }
	return errors.Join(m.writeCertificate(in("ca.pem"), m.authority.Raw), m.write(in("hubs.key"), m.secret, 0o600),
		m.writeCertificate(in("hub.pem"), text), m.writeKey(in("hub-key.pem"), key))
}

// serial returns a random number of a certificate.
func serial() *big.Int {
	text := make([]byte, 16)
	_, _ = rand.Read(text) // it never fails
	text[0] &= 0x7f
	return new(big.Int).SetBytes(text)
}

// sign returns a certificate that the authority has signed.
func (m *certifier) sign(c *x509.Certificate, public any) ([]byte, error) {
	return x509.CreateCertificate(rand.Reader, c, m.authority, public, m.signer)
}

func (m *certifier) path(name string) string { return filepath.Join(m.dir, name) }

// folder makes a folder, and its parents.
func (m *certifier) folder(name string) error {
	if err := os.MkdirAll(filepath.Dir(m.path(name)), 0o755); err != nil {
		return err
	}
	if err := os.Mkdir(m.path(name), 0o700); err != nil {
		return m.refuse(err)
	}
	m.made = append(m.made, m.path(name))
	return nil
}

func (m *certifier) writeCertificate(name string, text []byte) error {
	return m.write(name, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: text}), 0o644)
}

func (m *certifier) writeKey(name string, key *ecdsa.PrivateKey) error {
	text, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	return m.write(name, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: text}), 0o600)
}

// write writes a file that does not exist.
func (m *certifier) write(name string, text []byte, mode fs.FileMode) error {
	f, err := os.OpenFile(m.path(name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return m.refuse(err)
	}
	m.made = append(m.made, m.path(name))
	_, err = f.Write(text)
	return errors.Join(err, f.Sync(), f.Close())
}

// refuse returns the failure for a file that exists or cannot be written.
func (m *certifier) refuse(err error) error {
	at, there := errors.AsType[*fs.PathError](err)
	if !there || !errors.Is(err, fs.ErrExist) {
		return err
	}
	return &cli.Failure{
		Exit: cli.ExitConflict, Code: wire.CodeConflict, Message: at.Path + " already exists and was not changed", Because: []string{"Nothing was written."},
		Hint: "Move it away to replace it",
	}
}

// certificates is the JSON answer of key ca.
type certificates struct {
	FormatVersion string           `json:"format_version"`
	Authority     string           `json:"authority"` // the file of its key
	Ends          string           `json:"ends"`
	Hubs          []hubCertificate `json:"hubs"`
}

type hubCertificate struct {
	Name   string `json:"name"`
	Folder string `json:"folder"`
}

// show prints the files for each machine, and when the certificates end.
func (m *certifier) show(a *cli.App, hubs []namedHub, add bool) error {
	ends := m.now.AddDate(hubYears, 0, 0)
	if ends.After(m.authority.NotAfter) {
		ends = m.authority.NotAfter
	}
	if a.Flags.JSON {
		answer := certificates{FormatVersion: wire.FormatVersion, Authority: m.path("ca-key.pem"), Ends: ends.UTC().Format(time.RFC3339)}
		for _, hub := range hubs {
			answer.Hubs = append(answer.Hubs, hubCertificate{Name: hub[0], Folder: m.path(hub[0])})
		}
		return a.Document(answer)
	}
	for _, hub := range hubs {
		if err := a.Print("%s\n", filepath.Join(m.shown, hub[0])); err != nil {
			return err
		}
	}
	first := hubs[0][0]
	a.Note("For several hubs, copy the files of each folder to its machine, next to orchestrator.hcl, for example: scp %s/* %s:FOLDER", term.Word(filepath.Join(m.shown, first)), first)
	if !add {
		a.Note("Keep %s in a safe place, and do not copy it to a hub.", term.Word(filepath.Join(m.shown, "ca-key.pem")))
	}
	a.Note("The certificates expire on %s, and their authority on %s.", ends.Format(time.DateOnly), m.authority.NotAfter.Format(time.DateOnly))
	return nil
}
