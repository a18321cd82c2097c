// What all scenes share: a browser as people run it, and a stand that takes note
// of what Stile counted after each step.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { chromium } from 'playwright-core'

/** The parameters of this run, from the Go test. */
export const run = JSON.parse(process.env.STILE_E2E)

/** open starts Chromium with an empty profile and returns its context. */
export async function open(options = {}) {
  const profile = mkdtempSync(join(tmpdir(), 'stile-e2e-'))
  const context = await chromium.launchPersistentContext(profile, {
    executablePath: run.chromium,
    headless: true,
    // Playwright turns the back/forward cache off; people have it.
    ignoreDefaultArgs: ['--disable-back-forward-cache'],
    args: ['--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run',
      '--disable-background-networking', '--disable-component-update', '--disable-sync'],
    viewport: { width: 1100, height: 750 },
    ...options,
  })
  context.setDefaultTimeout(45_000) // a machine may be busy with other things
  watch(context)
  return {
    context,
    page: context.pages()[0],
    async close() {
      await context.close()
      // A child of the browser may still write for a moment.
      rmSync(profile, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 })
    },
  }
}

// What each context has under way, and when that last changed.
const traffic = new WeakMap()

function watch(context) {
  const seen = { open: new Set(), last: Date.now() }
  traffic.set(context, seen)
  context.on('request', (r) => { seen.open.add(r); seen.last = Date.now() })
  for (const end of ['requestfinished', 'requestfailed']) {
    context.on(end, (r) => { seen.open.delete(r); seen.last = Date.now() })
  }
}

/** quiet waits until a browser has sent nothing for a while and waits for nothing.
 * A page that went into the back/forward cache may leave requests open for good:
 * they are waited for no longer than five seconds. */
export async function quiet(context, least = 250, still = 300) {
  const seen = traffic.get(context)
  await new Promise((r) => setTimeout(r, least))
  for (;;) {
    const calm = Date.now() - seen.last
    if (calm >= 5000 || calm >= still && seen.open.size === 0) break
    await new Promise((r) => setTimeout(r, 50))
  }
  seen.open.clear()
}

/** arrived waits until a page is there. One out of the back/forward cache fires
 * no load event that Playwright would see. */
export async function arrived(page, path) {
  for (let i = 0; i < 900; i++) {
    const now = await page.evaluate(() => [location.pathname, document.readyState]).catch(() => [])
    if (now[0] === path && now[1] === 'complete') return
    await page.waitForTimeout(50)
  }
  throw new Error(`never arrived at ${path}, but at ${page.url()}`)
}

/** back goes back to a page and tells (1 or 0) whether the browser asked the site
 * for it again: it does not as long as one of its caches still has the page, which
 * it may drop when memory is short. */
export async function back(page, path) {
  await page.goBack({ waitUntil: 'commit' })
  await arrived(page, path)
  return page.evaluate(() => {
    const load = performance.getEntriesByType('navigation')[0]
    if (load.type !== 'back_forward' || load.transferSize === 0 || window.askedAgain) return 0
    window.askedAgain = true // this very page may be gone back to later
    return 1
  })
}

/** handled waits until a script has taken an element over: a click that comes
 * before that is the browser's, and loads a page. React and htmx leave a mark. */
export async function handled(page, selector) {
  await page.waitForFunction((s) => {
    const at = document.querySelector(s)
    return at && Object.keys(at).some((k) => k.startsWith('__reactProps') || k === 'htmx-internal-data' || k === '_htmx')
  }, selector)
}

/** step plays one step and hands its name and findings to the Go test. */
export async function step(context, name, play) {
  const sent = []
  const note = (r) => {
    const h = r.headers()
    sent.push({ url: r.url(), method: r.method(), type: r.resourceType(), rsc: h.rsc === '1', prefetch: h['next-router-prefetch'] !== undefined })
  }
  context.on('request', note)
  const found = (await play()) ?? {}
  await quiet(context)
  context.off('request', note)
  const res = await fetch(`${run.control}/step`, {
    method: 'POST',
    body: JSON.stringify({
      name,
      documents: sent.filter((r) => r.type === 'document').length,
      rsc: sent.filter((r) => r.rsc && !r.prefetch).length,
      prefetches: sent.filter((r) => r.rsc && r.prefetch).length,
      requests: sent.length,
      ...found,
    }),
  })
  if (!res.ok) throw new Error(`step ${name}: ${res.status}`)
}
