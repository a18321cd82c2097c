// A person who is limited: what is seen, and that it ends when it says.
import { join } from 'node:path'
import { open, run, step } from './browser.mjs'

const { context, page, close } = await open()
const at = (path) => run.site + path

/** use opens pages until one is refused. */
async function use() {
  for (let i = 0; i < 20; i++) {
    const res = await page.goto(at(`/page/${i}`))
    if (res.status() === 429) return { pages: i, wait: Number(res.headers()['retry-after']) }
  }
  throw new Error('never limited')
}

try {
  await step(context, 'limited', async () => {
    const found = await use()
    const timer = page.getByRole('timer')
    const first = await timer.textContent()
    await page.waitForTimeout(1200)
    const second = await timer.textContent()
    // Tab order, and what a screen reader is told.
    const order = []
    for (let i = 0; i < 4; i++) {
      await page.keyboard.press('Tab')
      order.push(await page.evaluate(() => document.activeElement.textContent))
    }
    const looks = { desktop: { width: 1280, height: 800 }, phone: { width: 360, height: 740 } }
    for (const scheme of ['light', 'dark']) {
      await page.emulateMedia({ colorScheme: scheme })
      for (const [name, size] of Object.entries(looks)) {
        await page.setViewportSize(size)
        await page.screenshot({ path: join(run.shots, `limited-${name}-${scheme}.png`) })
      }
    }
    const wide = await page.evaluate(() => document.documentElement.scrollWidth > innerWidth)
    const aria = await page.locator('main').ariaSnapshot()
    return { ...found, first, second, order, wide, aria }
  })
  await step(context, 'the wait is over', async () => {
    await page.waitForFunction(() => document.querySelector('[role=timer]')?.textContent === 'now', null, { timeout: 30_000 })
    const link = page.getByRole('link', { name: 'Try again' })
    const [res] = await Promise.all([page.waitForResponse((r) => r.request().resourceType() === 'document'), link.click()])
    return { status: res.status(), title: await page.title() }
  })
  await step(context, 'without a script', async () => {
    const other = await open({ javaScriptEnabled: false })
    try {
      const plain = other.page
      let res
      for (let i = 0; i < 20 && res?.status() !== 429; i++) res = await plain.goto(at(`/page/${i}`))
      await plain.screenshot({ path: join(run.shots, 'limited-without-script.png') })
      return { status: res.status(), text: await plain.getByRole('timer').textContent() }
    } finally {
      await other.close()
    }
  })
} finally {
  await close()
}
