// A certified OpenID provider for practice, on loopback: everybody logs in by any name and password, and is in the group developers.
// In go a key and certificate (PEM files); out comes one line with the issuer, as soon as it listens.
//
//   node provider.mjs --key key.pem --certificate cert.pem [--port 9443] [--controlled]
//
// Clients: kubernetes (public), confidential (secret: only-for-tests), brief (public; its ID tokens last a minute).
// Controlled, it reads commands as lines of JSON, answers each with one, and ends with its standard input:
//   {"do": "count"}   what it was asked for so far
//   {"do": "stop"}    nobody can reach it until {"do": "start"}
import { once } from 'node:events';
import { generateKeyPairSync } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:https';
import { createInterface } from 'node:readline';
import { parseArgs } from 'node:util';
import { Provider } from 'oidc-provider';

const { values: given } = parseArgs({
  options: { key: { type: 'string' }, certificate: { type: 'string' }, port: { type: 'string', default: '0' }, controlled: { type: 'boolean' } },
});
console.log = console.info = console.error; // standard output is for what is promised above
const host = '127.0.0.1';
const server = createServer({ key: readFileSync(given.key), cert: readFileSync(given.certificate) });
server.listen(Number(given.port), host);
await once(server, 'listening');
const { port } = server.address();
const issuer = `https://${host}:${port}`;

const key = (type, options, more) => ({ ...generateKeyPairSync(type, options).privateKey.export({ format: 'jwk' }), use: 'sig', ...more });
const client = (id, more) => ({
  client_id: id,
  application_type: 'native', // any port of loopback (RFC 8252 section 7.3)
  grant_types: ['authorization_code', 'refresh_token', 'urn:ietf:params:oauth:grant-type:device_code'],
  response_types: ['code'],
  redirect_uris: ['http://127.0.0.1/callback'],
  token_endpoint_auth_method: 'none',
  ...more,
});
let tokens = 0;
const provider = new Provider(issuer, {
  clients: [
    client('kubernetes'),
    client('brief'),
    client('confidential', { client_secret: 'only-for-tests', token_endpoint_auth_method: 'client_secret_basic', id_token_signed_response_alg: 'ES256' }),
  ],
  // Each token has a number, by which a server can refuse one of them.
  findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id, groups: ['developers'], number: String((tokens += 1)) }) }),
  claims: { openid: ['sub', 'groups', 'number'] },
  conformIdTokenClaims: false,
  jwks: { keys: [key('rsa', { modulusLength: 2048 }, { kid: 'rsa', alg: 'RS256' }), key('ec', { namedCurve: 'P-256' }, { kid: 'ec', alg: 'ES256' })] },
  pkce: { required: () => true },
  features: { deviceFlow: { enabled: true }, revocation: { enabled: true } },
  cookies: { keys: ['only for practice'] },
  ttl: {
    IdToken: (_, token, { clientId }) => (clientId === 'brief' ? 60 : 300),
    AccessToken: 300, RefreshToken: 3600, DeviceCode: 600, Session: 3600, Grant: 3600, Interaction: 600,
  },
});

const counts = {};
const count = (what) => { counts[what] = (counts[what] ?? 0) + 1; };
const grant = ({ oidc }) => oidc.params?.grant_type?.split(':').at(-1) ?? 'unknown';
provider.on('grant.success', (context) => count(grant(context)));
provider.on('grant.error', (context, error) => {
  if (error.error !== 'authorization_pending') count(`refused ${grant(context)}`);
});
provider.on('grant.revoked', () => count('revoked'));
server.on('request', (request) => {
  count('request');
  if (request.url.startsWith('/auth?')) count('authorization'); // those that go on have a path below
  if (request.url.startsWith('/device/auth')) count('device');
});
server.on('request', provider.callback());

const commands = {
  count: () => counts,
  stop: async () => {
    if (server.listening) {
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    }
    return {};
  },
  start: async () => {
    if (!server.listening) {
      server.listen(port, host);
      await once(server, 'listening');
    }
    return {};
  },
};
process.stdout.write(`${issuer}\n`);
if (given.controlled) {
  for await (const line of createInterface({ input: process.stdin })) {
    process.stdout.write(`${JSON.stringify(await commands[JSON.parse(line).do]())}\n`);
  }
  process.exit(0);
}
