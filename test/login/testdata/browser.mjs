// A person with a real browser. In go an address, what they do ("agree", "refuse"), and a device code if there is one; out comes one
// line of JSON with address, text and complaints of the last page.
import { chromium } from 'playwright-core';

const [executablePath, address, does, userCode] = process.argv.slice(2);
const browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] });
try {
  const context = await browser.newContext({ ignoreHTTPSErrors: true });
  await context.route((url) => url.hostname !== '127.0.0.1', (route) => route.abort()); // fonts of the provider's pages
  const page = await context.newPage();
  page.setDefaultTimeout(30000);
  const complaints = [];
  page.on('console', (message) => complaints.push(message.text()));
  page.on('pageerror', (error) => complaints.push(String(error)));
  await page.goto(address);
  if (userCode) {
    await page.fill('input[name=user_code]', userCode);
    await page.click('button:has-text("Continue")');
    await page.waitForSelector(`text=${userCode}`); // the person compares
    await page.click('button:has-text("Continue")');
  }
  await page.fill('input[name=login]', 'alice');
  await page.fill('input[name=password]', 'any');
  await page.click('button[type=submit]');
  if (does === 'refuse') {
    await page.click('text=Cancel');
  } else {
    await page.click('button:has-text("Continue")');
  }
  complaints.length = 0; // those of the provider's own pages
  await page.waitForSelector(userCode ? 'text=Sign-in Success' : 'text=logged in');
  process.stdout.write(`${JSON.stringify({ url: page.url(), text: await page.innerText('body'), complaints })}\n`);
} finally {
  await browser.close();
}
